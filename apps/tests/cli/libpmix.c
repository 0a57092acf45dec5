// A library with the functions of PMIx that answers as TALPF_TEST_PMIX says: the place of one that is installed.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { char job[256]; uint32_t rank; } process;
typedef struct { uint16_t kind; union { uint32_t number; uint64_t room[3]; } data; } value;

static int says(const char *what) {
    const char *said = getenv("TALPF_TEST_PMIX");
    return said && !strcmp(said, what);
}

static int answer(const char *hang, const char *fail) {
    if (says(hang)) pause();
    return says(fail) ? -25 : 0;
}

const char *PMIx_Get_version(void) { return says("old") ? "PMIx 2.2.5" : "PMIx 3.1.5"; }
const char *PMIx_Error_string(int code) { return code == -25 ? "UNREACHABLE" : "ANOTHER"; }
int PMIx_Finalize(const void *info, size_t count) { return answer("hang in finalize", "fail in finalize"); }
int PMIx_Put(uint8_t scope, const char *key, const value *put) { return answer("hang in put", "fail in put"); }
int PMIx_Commit(void) { return answer("hang in commit", "fail in commit"); }
int PMIx_Fence(const process *all, size_t number, const void *info, size_t count) {
    if (says("time out in fence")) return -24;
    return answer("hang in fence", "fail in fence");
}

int PMIx_Init(process *self, const void *info, size_t count) {
    strcpy(self->job, says("another job") ? "another" : getenv("PMIX_NAMESPACE"));
    self->rank = says("another rank") ? 1 : (uint32_t)atoi(getenv("PMIX_RANK"));
    return answer("hang in init", "fail in init");
}

int PMIx_Get(const process *of, const char *key, const void *info, size_t count, value **got) {
    int is_size = !strcmp(key, "pmix.job.size");
    if (!is_size && !says("bytes of another kind")) return -46;
    if (is_size && says("no size")) return -46;
    *got = malloc(sizeof(value));
    (*got)->kind = says("size of another kind") ? 6 : 14;
    (*got)->data.number = says("no processes") ? 0 : 3;
    return answer("hang in get", "fail in get");
}
