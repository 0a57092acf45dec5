/* Mistakes of programs, each of which ends the program with one line and status 6. */
#include "check.h"

static int x[4] = {1, 2, 3, 4}, y[4] = {5, 6, 7, 8};

/* Slots of x and y, with room for some messages. */
struct slots {
    lpf_memslot_t x, y;
};

static struct slots prepare(lpf_t ctx, size_t messages)
{
    make_room(ctx, 3, messages);
    int *own = malloc(sizeof x), *other = malloc(sizeof y);
    memcpy(own, x, sizeof x), memcpy(other, y, sizeof y);
    struct slots slots = {global(ctx, own, sizeof x), global(ctx, other, sizeof y)};
    SYNC(ctx);
    return slots;
}

/* Reaches the end of a superstep, which is too late. */
static void too_late(lpf_t ctx)
{
    SYNC(ctx);
    CHECK(!"the mistake was not seen");
}

#define NEXT ((pid + 1) % processes)

#define MISUSE(name, messages, ...)                                                      \
    SPMD(name##_spmd)                                                                    \
    {                                                                                    \
        UNUSED_ARGS;                                                                     \
        struct slots slots = prepare(ctx, messages);                                     \
        (void)slots;                                                                     \
        __VA_ARGS__;                                                                     \
        too_late(ctx);                                                                   \
    }                                                                                    \
    static void name(void) { run_all(name##_spmd); }

#define PUT(src, src_offset, pid, dst, dst_offset, size) \
    lpf_put(ctx, src, src_offset, pid, dst, dst_offset, size, LPF_MSG_DEFAULT)
#define GET(pid, src, src_offset, dst, dst_offset, size) \
    lpf_get(ctx, pid, src, src_offset, dst, dst_offset, size, LPF_MSG_DEFAULT)

MISUSE(put_to_no_process, 4, PUT(slots.x, 0, processes, slots.y, 0, 4))
MISUSE(get_from_no_process, 4, GET(LPF_MAX_P, slots.x, 0, slots.y, 0, 4))
MISUSE(put_from_no_slot, 4, PUT(LPF_INVALID_MEMSLOT, 0, NEXT, slots.y, 0, 4))
MISUSE(put_to_no_slot, 4, PUT(slots.x, 0, NEXT, LPF_INVALID_MEMSLOT, 0, 4))
MISUSE(get_from_no_slot, 4, GET(NEXT, 12345678, 0, slots.y, 0, 4))
MISUSE(get_to_no_slot, 4, GET(NEXT, slots.x, 0, 12345678, 0, 4))
MISUSE(put_past_source, 4, PUT(slots.x, 13, NEXT, slots.y, 0, 4))
MISUSE(put_past_destination, 4, PUT(slots.x, 0, NEXT, slots.y, 13, 4))
MISUSE(long_put_past_destination, 4, PUT(slots.x, 0, NEXT, slots.y, 1, 16))
MISUSE(get_past_source, 4, GET(NEXT, slots.x, 13, slots.y, 0, 4))
MISUSE(get_past_destination, 4, GET(NEXT, slots.x, 0, slots.y, 13, 4))
MISUSE(put_source_overflow, 4, PUT(slots.x, 2, NEXT, slots.y, 0, (size_t)-1))
MISUSE(put_destination_overflow, 4, PUT(slots.x, 0, NEXT, slots.y, (size_t)-1, 4))
MISUSE(get_source_overflow, 4, GET(NEXT, slots.x, (size_t)-1, slots.y, 0, 4))
MISUSE(get_destination_overflow, 4, GET(NEXT, slots.x, 0, slots.y, 2, (size_t)-1))
MISUSE(put_to_local_slot, 4, PUT(slots.x, 0, NEXT, local(ctx, y, sizeof y), 0, 4))
MISUSE(get_from_local_slot, 4, GET(NEXT, local(ctx, y, sizeof y), 0, slots.x, 0, 4))
MISUSE(put_to_inactive_slot, 4, PUT(slots.x, 0, NEXT, global(ctx, y, sizeof y), 0, 4))
MISUSE(get_from_inactive_slot, 4, GET(NEXT, global(ctx, y, sizeof y), 0, slots.x, 0, 4))
MISUSE(put_without_room, 0, PUT(slots.x, 0, NEXT, slots.y, 0, 4))
MISUSE(too_many_puts, 1, PUT(slots.x, 0, NEXT, slots.y, 0, 4); PUT(slots.x, 4, NEXT, slots.y, 4, 4))
MISUSE(too_many_gets, 1, GET(NEXT, slots.x, 0, slots.y, 0, 4); GET(NEXT, slots.x, 4, slots.y, 4, 4))
MISUSE(put_and_get, 1, PUT(slots.x, 0, NEXT, slots.y, 0, 4); GET(NEXT, slots.x, 4, slots.y, 4, 4))
MISUSE(put_to_itself_without_room, 1, PUT(slots.x, 0, pid, slots.y, 0, 4))
MISUSE(get_from_itself_without_room, 1, GET(pid, slots.x, 0, slots.y, 0, 4))
MISUSE(too_many_for_the_target, 2, PUT(slots.x, 0, 0, slots.y, 0, 4); if (processes < 3) PUT(slots.x, 0, 0, slots.y, 0, 4))
MISUSE(too_many_from_the_target, 2, GET(0, slots.x, 0, slots.y, 0, 4); if (processes < 3) GET(0, slots.x, 0, slots.y, 0, 4))
MISUSE(no_room_for_a_slot, 0, global(ctx, x, sizeof x); global(ctx, y, sizeof y))
MISUSE(no_room_for_a_local_slot, 0, local(ctx, x, sizeof x); local(ctx, y, sizeof y))
MISUSE(deregister_no_slot, 0, lpf_deregister(ctx, LPF_INVALID_MEMSLOT))
MISUSE(deregister_twice, 0, OK(lpf_deregister(ctx, slots.x)); lpf_deregister(ctx, slots.x))
MISUSE(put_after_deregister, 4, OK(lpf_deregister(ctx, slots.x)); PUT(slots.x, 0, NEXT, slots.y, 0, 4))
MISUSE(put_after_deregister_of_destination, 4, OK(lpf_deregister(ctx, slots.y)); PUT(slots.x, 0, NEXT, slots.y, 0, 4))
MISUSE(deregister_source_in_use, 4, PUT(slots.x, 0, NEXT, slots.y, 0, 4); lpf_deregister(ctx, slots.x))
MISUSE(deregister_destination_in_use, 4, PUT(slots.x, 0, NEXT, slots.y, 0, 4); lpf_deregister(ctx, slots.y))
MISUSE(registrations_differ, 4, if (pid > 0) global(ctx, x, sizeof x))
MISUSE(deregistrations_differ, 4, OK(lpf_deregister(ctx, pid == 0 ? slots.x : slots.y)))
MISUSE(deregistered_in_another_order, 4, OK(lpf_deregister(ctx, pid == 0 ? slots.x : slots.y));
       OK(lpf_deregister(ctx, pid == 0 ? slots.y : slots.x)))
MISUSE(deregistered_by_one, 4, if (pid == 0) OK(lpf_deregister(ctx, slots.x)))
MISUSE(put_reads_what_puts_write, 8, PUT(slots.x, 0, NEXT, slots.y, 4, 8); PUT(slots.y, 8, NEXT, slots.x, 8, 4))
MISUSE(put_reads_what_a_get_writes, 8, PUT(slots.x, 0, NEXT, slots.y, 4, 8); GET(NEXT, slots.y, 0, slots.x, 6, 4))
MISUSE(get_reads_what_a_get_writes, 8, GET(NEXT, slots.x, 0, slots.x, 2, 4))
MISUSE(probe_into_null, 0, lpf_probe(ctx, NULL))
MISUSE(register_into_null, 0, lpf_register_local(ctx, x, sizeof x, NULL))
MISUSE(register_null, 0, lpf_memslot_t slot; lpf_register_local(ctx, NULL, 1, &slot))
MISUSE(no_context, 0, lpf_sync(LPF_NONE, LPF_SYNC_DEFAULT))
MISUSE(unaligned_atomic, 0, talpf_atomic_fetch_and_add(ctx, slots.x, 0, NEXT, slots.y, 4, 1))
MISUSE(unknown_attribute, 0, talpf_sync(ctx, 0x6 << 28))
MISUSE(immediate_put_past_destination, 0, talpf_put(ctx, slots.x, 0, NEXT, slots.y, 13, 4, LPF_MSG_DEFAULT))
MISUSE(more_arrivals_than_expected, 0,
       OK(talpf_put(ctx, slots.x, 0, NEXT, slots.y, 0, 4, LPF_MSG_DEFAULT));
       OK(talpf_put(ctx, slots.x, 0, NEXT, slots.y, 4, 4, LPF_MSG_DEFAULT)); SYNC(ctx);
       talpf_sync(ctx, TALPF_SYNC_MSG(1)))
MISUSE(aborts, 0, lpf_abort(ctx))

static void use_context(size_t n, const void *array, void *value)
{
    (void)n, (void)array;
    lpf_sync(*(lpf_t *)value, LPF_SYNC_DEFAULT);
}

MISUSE(sync_in_an_operator, 4, lpf_coll_t coll; lpf_t copy = ctx;
       OK(lpf_collectives_init(ctx, pid, processes, 1, sizeof copy, 0, &coll));
       OK(lpf_allcombine(coll, &copy, slots.x, 1, sizeof copy, use_context)))
MISUSE(operators_on_some, 4, lpf_coll_t coll;
       OK(lpf_collectives_init(ctx, pid, processes, 1, 4, 0, &coll));
       if (pid == 0) OK(lpf_allcombine(coll, x, slots.x, 1, 4, use_context)))
MISUSE(no_root, 4, lpf_coll_t coll; OK(lpf_collectives_init(ctx, pid, processes, 1, 4, 0, &coll));
       lpf_broadcast(coll, slots.x, slots.y, 4, processes))
MISUSE(element_too_large, 4, lpf_coll_t coll; OK(lpf_collectives_init(ctx, pid, processes, 1, 4, 0, &coll));
       lpf_allreduce(coll, x, slots.x, 8, use_context))
MISUSE(stride_of_zero, 4, lpf_coll_t coll;
       lpf_collectives_init_strided(ctx, pid, processes, 0, processes, 0, 1, 4, 0, &coll))

SPMD(never)
{
    UNUSED_ARGS;
    CHECK(!"a program that must not start");
}

static lpf_args_t args_with(const void *input, size_t input_size, size_t output_size, size_t f_size)
{
    lpf_args_t args = {input, input_size, NULL, output_size, NULL, f_size};
    return args;
}

static void exec_nothing(void) { lpf_exec(LPF_ROOT, 1, NULL, LPF_NO_ARGS); }
static void exec_null_input(void) { lpf_exec(LPF_ROOT, 1, never, args_with(NULL, 1, 0, 0)); }
static void exec_null_output(void) { lpf_exec(LPF_ROOT, 1, never, args_with(NULL, 0, 1, 0)); }
static void exec_null_symbols(void) { lpf_exec(LPF_ROOT, 1, never, args_with(x, 1, 0, 1)); }
static void exec_nowhere(void) { lpf_exec(LPF_NONE, 1, never, LPF_NO_ARGS); }
static void hook_null(void) { lpf_hook(LPF_INIT_NONE, never, LPF_NO_ARGS); }
static void finalize_null(void) { lpf_pthread_finalize(LPF_INIT_NONE); }

static void initialize_out_of_range(void)
{
    lpf_init_t init;
    lpf_pthread_initialize(2, 2, &init);
}

static void hook_null_symbols(void)
{
    lpf_init_t init;
    OK(lpf_pthread_initialize(0, 1, &init));
    lpf_hook(init, never, args_with(x, 1, 0, 5));
}

static void rehook_null_input(void) { lpf_rehook(LPF_ROOT, never, args_with(NULL, 1, 0, 0)); }
static void root_without_room(void)
{
    lpf_memslot_t slot;
    lpf_register_local(LPF_ROOT, x, sizeof x, &slot);
}

#define CASE(name) {"misuse_" #name, name}

const struct test misuse_cases[] = {
    CASE(put_to_no_process), CASE(get_from_no_process), CASE(put_from_no_slot), CASE(put_to_no_slot),
    CASE(get_from_no_slot), CASE(get_to_no_slot), CASE(put_past_source), CASE(put_past_destination),
    CASE(long_put_past_destination), CASE(get_past_source), CASE(get_past_destination),
    CASE(put_source_overflow), CASE(put_destination_overflow), CASE(get_source_overflow),
    CASE(get_destination_overflow), CASE(put_to_local_slot), CASE(get_from_local_slot),
    CASE(put_to_inactive_slot), CASE(get_from_inactive_slot), CASE(put_without_room), CASE(too_many_puts),
    CASE(too_many_gets), CASE(put_and_get), CASE(put_to_itself_without_room),
    CASE(get_from_itself_without_room), CASE(too_many_for_the_target), CASE(too_many_from_the_target),
    CASE(no_room_for_a_slot), CASE(no_room_for_a_local_slot), CASE(deregister_no_slot),
    CASE(deregister_twice), CASE(put_after_deregister), CASE(put_after_deregister_of_destination),
    CASE(deregister_source_in_use), CASE(deregister_destination_in_use), CASE(registrations_differ),
    CASE(deregistrations_differ), CASE(deregistered_in_another_order), CASE(deregistered_by_one),
    CASE(put_reads_what_puts_write), CASE(put_reads_what_a_get_writes), CASE(get_reads_what_a_get_writes),
    CASE(probe_into_null), CASE(register_into_null), CASE(register_null), CASE(no_context),
    CASE(unaligned_atomic), CASE(unknown_attribute), CASE(immediate_put_past_destination),
    CASE(more_arrivals_than_expected), CASE(aborts), CASE(sync_in_an_operator), CASE(operators_on_some),
    CASE(no_root), CASE(element_too_large), CASE(stride_of_zero), CASE(exec_nothing), CASE(exec_null_input),
    CASE(exec_null_output), CASE(exec_null_symbols), CASE(exec_nowhere), CASE(hook_null),
    CASE(finalize_null), CASE(initialize_out_of_range), CASE(hook_null_symbols), CASE(rehook_null_input),
    CASE(root_without_room), {NULL, NULL},
};
