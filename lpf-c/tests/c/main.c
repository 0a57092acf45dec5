/* Runs the case that is named, or prints the names of all. */
#include "check.h"

int main(int argc, char **argv)
{
    const struct test *const tables[] = {core_cases, collective_cases, start_cases, immediate_cases, bsplib_cases, misuse_cases};
    for (size_t table = 0; table < sizeof tables / sizeof tables[0]; ++table) {
        for (const struct test *test = tables[table]; test->name; ++test) {
            if (argc < 2) {
                puts(test->name);
            } else if (strcmp(argv[1], test->name) == 0) {
                test->run();
                return 0;
            }
        }
    }
    return argc < 2 ? 0 : 2;
}
