// Two processes that libfabric connects, for the least that the rail on it can cost: a ping-pong of
// messages of 8 bytes, a stream of writes of SIZE bytes, each with FI_DELIVERY_COMPLETE, of which the last
// one is answered by a message, and a stream of as many reads.
//
// Usage: peer PROVIDER ROUNDS WRITES CORE SIZE; one process on that core, the other one on the others.
// Prints `one_way_ns` of a message, `writes_gbs` and `reads_gbs`.
#define _GNU_SOURCE
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WINDOW = 16, RECEIVES = 8 };

static size_t size;

struct card {
    char name[256];
    size_t length;
    uint64_t key, address;
};

static struct fid_ep *endpoint;
static struct fid_cq *queue;
static fi_addr_t to;
static uint64_t received, delivered;
static struct fi_context2 contexts[RECEIVES], write_context;
static char inbox[RECEIVES][64];

static void check(const char *call, long result) {
    if (result >= 0) return;
    fprintf(stderr, "%s: %s\n", call, fi_strerror((int)-result));
    exit(1);
}

static void give(int number) {
    long result;
    do result = fi_recv(endpoint, inbox[number], sizeof inbox[number], NULL, FI_ADDR_UNSPEC, &contexts[number]);
    while (result == -FI_EAGAIN);
    check("fi_recv", result);
}

static void progress(void) {
    struct fi_cq_data_entry entries[16];
    long count = fi_cq_read(queue, entries, 16);
    if (count == -FI_EAGAIN) return;
    check("fi_cq_read", count);
    for (long i = 0; i < count; i++) {
        if (entries[i].op_context == &write_context) {
            delivered++;
        } else if (entries[i].flags & FI_RECV) {
            received++;
            give((int)((struct fi_context2 *)entries[i].op_context - contexts));
        }
    }
}

static void message(void) {
    uint64_t bytes = 1;
    long result;
    while ((result = fi_inject(endpoint, &bytes, sizeof bytes, to)) == -FI_EAGAIN) progress();
    check("fi_inject", result);
}

static void await(uint64_t count) {
    while (received < count) progress();
}

// Writes, or reads, so many times, until all have ended.
static void stream(int operations, int reads, char *local, struct fid_mr *memory, struct card *other) {
    uint64_t before = delivered;
    for (int posted = 0; posted < operations;) {
        while (posted - (long)(delivered - before) >= WINDOW) progress();
        struct iovec room = {local, size};
        struct fi_rma_iov there = {other->address, size, other->key};
        void *descriptor = fi_mr_desc(memory);
        struct fi_msg_rma operation = {
            .msg_iov = &room,
            .desc = &descriptor,
            .iov_count = 1,
            .addr = to,
            .rma_iov = &there,
            .rma_iov_count = 1,
            .context = &write_context,
        };
        long result = reads ? fi_readmsg(endpoint, &operation, FI_COMPLETION)
                            : fi_writemsg(endpoint, &operation, FI_COMPLETION | FI_DELIVERY_COMPLETE);
        if (result == -FI_EAGAIN) {
            progress();
            continue;
        }
        check(reads ? "fi_readmsg" : "fi_writemsg", result);
        posted++;
    }
    while (delivered - before < (uint64_t)operations) progress();
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

static void pin(int core, int is_other) {
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores)) return;
    if (is_other) {
        CPU_CLR(core, &cores);
    } else {
        CPU_ZERO(&cores);
        CPU_SET(core, &cores);
    }
    sched_setaffinity(0, sizeof cores, &cores);
}

int main(int count, char **arguments) {
    if (count != 6) return 2;
    size = strtoul(arguments[5], NULL, 10);
    int rounds = atoi(arguments[2]), writes = atoi(arguments[3]), core = atoi(arguments[4]);
    int ends[2];
    check("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    pid_t parent = getpid(), child = fork();
    check("fork", child);
    int is_child = child == 0;
    if (is_child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) return 1;
    }
    pin(core, is_child);

    struct fi_info *hints = fi_allocinfo(), *info;
    hints->caps = FI_MSG | FI_RMA;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->domain_attr->threading = FI_THREAD_SAFE;
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->fabric_attr->prov_name = strdup(arguments[1]);
    check("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info));

    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *addresses;
    struct fi_cq_attr queue_attributes = {.size = 1024, .format = FI_CQ_FORMAT_DATA};
    struct fi_av_attr address_attributes = {.type = FI_AV_TABLE};
    check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
    check("fi_domain", fi_domain(fabric, info, &domain, NULL));
    check("fi_cq_open", fi_cq_open(domain, &queue_attributes, &queue, NULL));
    check("fi_av_open", fi_av_open(domain, &address_attributes, &addresses, NULL));
    check("fi_endpoint", fi_endpoint(domain, info, &endpoint, NULL));
    check("fi_ep_bind", fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV));
    check("fi_ep_bind", fi_ep_bind(endpoint, &addresses->fid, 0));
    check("fi_enable", fi_enable(endpoint));
    for (int i = 0; i < RECEIVES; i++) give(i);

    char *source = malloc(size), *target = malloc(size);
    memset(source, 1, size);
    memset(target, 0, size);
    struct fid_mr *memory[2];
    uint64_t access = FI_REMOTE_WRITE | FI_WRITE | FI_REMOTE_READ | FI_READ;
    char *of[2] = {source, target};
    for (int i = 0; i < 2; i++) {
        check("fi_mr_reg", fi_mr_reg(domain, of[i], size, access, 0, 7 + i, 0, &memory[i], NULL));
        if (info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
            check("fi_mr_bind", fi_mr_bind(memory[i], &endpoint->fid, 0));
            check("fi_mr_enable", fi_mr_enable(memory[i]));
        }
    }
    struct card own = {.length = sizeof own.name, .key = fi_mr_key(memory[1])}, other;
    own.address = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)target : 0;
    check("fi_getname", fi_getname(&endpoint->fid, own.name, &own.length));
    if (write(ends[is_child], &own, sizeof own) != sizeof own) return 1;
    if (recv(ends[is_child], &other, sizeof other, MSG_WAITALL) != sizeof other) return 1;
    if (fi_av_insert(addresses, other.name, 1, &to, 0, NULL) != 1) return 1;

    if (is_child) {
        // A message for the warm-up, those of the ping-pong, and that behind the stream.
        for (int i = 1; i <= rounds + 2; i++) {
            await(i);
            message();
        }
        // The last answer leaves this process only while it progresses.
        for (;;) progress();
    }
    message();
    await(1);
    double start = now();
    for (int i = 0; i < rounds; i++) {
        message();
        await(i + 2);
    }
    printf("one_way_ns %.1f\n", 1e9 * (now() - start) / (2.0 * rounds));

    start = now();
    stream(writes, 0, source, memory[0], &other);
    message();
    await(rounds + 2);
    printf("writes_gbs %.3f\n", 1e-9 * size * writes / (now() - start));
    start = now();
    stream(writes, 1, source, memory[0], &other);
    printf("reads_gbs %.3f\n", 1e-9 * size * writes / (now() - start));
    fflush(stdout);
    kill(child, SIGKILL);
    return 0;
}
