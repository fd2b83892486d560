/*
 * A computer around ftlab's device: one CPU, processes that compute and touch pages, and a page cache. The program
 * owns the time: its event loop asks the device when something can happen there, and advances both to whatever comes
 * first. A process that misses the cache blocks until the device has completed its read; the CPU runs another.
 *
 * It prints what the size of the cache changes: one row per size. Each size has a device of its own; with `threads`
 * as argument, each has a thread of its own too, and the numbers are the same.
 *
 *     cc cosim.c $(pkg-config --cflags --libs ftlab) -pthread -o cosim
 */
#include <ftlab.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSES = 8, ACCESSES = 4000, PAGE = 4096, WORKING_SET = 16384, BUFFER = 16 };
enum { NOBODY = -1, HIT_NS = 500, COMPUTE_NS = 40000 };

/* Pages in the cache, by the clock algorithm. */
struct frame { uint32_t page; int used, referenced, dirty; };

struct process { uint64_t random, waits_for; uint32_t page; int left, writes; };

struct computer {
    size_t frames;
    ftlab_sim *device;
    struct process process[PROCESSES];
    int ready[PROCESSES], first, readies, running;
    uint64_t now_ns, done_ns, busy_ns;
    struct frame *cache;
    size_t hand, *frame_of;
    uint64_t hits, reads, writes, read_ns;
};

/* Ends the program if the library refuses a call: the only errors here are mistakes of this program. */
static int checked(int code, const ftlab_sim *device)
{
    if (code < 0) {
        fprintf(stderr, "cosim: %s: %s\n", ftlab_strerror(code), ftlab_last_error(device));
        exit(1);
    }
    return code;
}

static uint64_t draw(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random >> 11;
}

static void make_ready(struct computer *c, int process)
{
    c->ready[(c->first + c->readies++) % PROCESSES] = process;
}

static uint64_t submit(struct computer *c, char op, uint32_t page)
{
    ftlab_request request = { .at_ns = FTLAB_NOW, .op = op, .offset = (uint64_t)page * PAGE, .size = PAGE };
    uint64_t id;
    checked(ftlab_submit(c->device, &request, &id), c->device);
    return id;
}

/* Puts a page into the cache; a dirty one that has to leave is written, and nobody waits for it. */
static struct frame *load(struct computer *c, uint32_t page)
{
    struct frame *frame;
    for (;; frame->referenced = 0) {
        frame = &c->cache[c->hand++ % c->frames];
        if (!frame->referenced)
            break;
    }
    if (frame->used) {
        c->frame_of[frame->page] = 0;
        if (frame->dirty) {
            submit(c, 'W', frame->page);
            c->writes++;
        }
    }
    *frame = (struct frame){ .page = page, .used = 1, .referenced = 1 };
    c->frame_of[page] = (size_t)(frame - c->cache) + 1;
    return frame;
}

static void touch(struct computer *c, struct process *process)
{
    struct frame *frame = &c->cache[c->frame_of[process->page] - 1];
    frame->referenced = 1;
    frame->dirty |= process->writes;
}

/* The running process has computed; it touches a page, and blocks if the cache does not have it. */
static void access_page(struct computer *c)
{
    struct process *process = &c->process[c->running];
    uint64_t random = draw(&process->random);
    /* Nine of ten accesses go to a tenth of the pages. */
    uint32_t pages = random % 10 ? WORKING_SET / 10 : WORKING_SET;
    process->page = (uint32_t)(draw(&process->random) % pages);
    process->writes = random / 10 % 4 == 0;
    process->left--;
    if (c->frame_of[process->page]) {
        c->hits++;
        touch(c, process);
        make_ready(c, c->running);
    } else {
        process->waits_for = submit(c, 'R', process->page);
        c->reads++;
    }
    c->running = NOBODY;
}

static void completed(struct computer *c, const ftlab_completion *done)
{
    if (done->op != 'R')
        return;
    c->read_ns += done->complete_ns - done->arrival_ns;
    for (int i = 0; i < PROCESSES; i++) {
        struct process *process = &c->process[i];
        if (process->waits_for != done->id)
            continue;
        process->waits_for = 0;
        /* Another process may have brought the page in meanwhile. */
        if (!c->frame_of[process->page])
            load(c, process->page);
        touch(c, process);
        make_ready(c, i);
    }
}

/* What the CPU does at this instant. */
static void schedule(struct computer *c)
{
    if (c->running != NOBODY && c->done_ns == c->now_ns)
        access_page(c);
    while (c->running == NOBODY && c->readies > 0) {
        int next = c->ready[c->first++ % PROCESSES];
        c->readies--;
        if (c->process[next].left == 0)
            continue;
        uint64_t compute_ns = HIT_NS + draw(&c->process[next].random) % (2 * COMPUTE_NS);
        c->running = next;
        c->done_ns = c->now_ns + compute_ns;
        c->busy_ns += compute_ns;
    }
}

/* The event loop: the CPU's next event or the device's, whichever comes first. */
static void run(struct computer *c)
{
    ftlab_completion done[BUFFER];
    for (;;) {
        uint64_t next_ns;
        schedule(c);
        checked(ftlab_next_event_ns(c->device, &next_ns), c->device);
        if (c->running != NOBODY && c->done_ns < next_ns)
            next_ns = c->done_ns;
        if (next_ns == FTLAB_NEVER)
            return;
        /* If the buffer is full, time stands at the last completion in it, and the loop goes on from there. */
        size_t count;
        checked(ftlab_advance(c->device, next_ns, done, BUFFER, &count), c->device);
        checked(ftlab_now_ns(c->device, &c->now_ns), c->device);
        for (size_t i = 0; i < count; i++)
            completed(c, &done[i]);
    }
}

static void *simulate(void *argument)
{
    struct computer *c = argument;
    const char *set[] = { "flash.blocks_per_plane=512", "device.precondition=fill", "host.scheduler=row" };
    ftlab_options options = { .set = set, .set_count = sizeof set / sizeof *set };
    checked(ftlab_open("map-plus", &options, &c->device), NULL);
    c->cache = calloc(c->frames, sizeof *c->cache);
    c->frame_of = calloc(WORKING_SET, sizeof *c->frame_of);
    if (!c->cache || !c->frame_of)
        abort();
    c->running = NOBODY;
    for (int i = 0; i < PROCESSES; i++) {
        c->process[i] = (struct process){ .random = 88172645463325252u + (uint64_t)i, .left = ACCESSES };
        make_ready(c, i);
    }
    run(c);
    free(c->cache);
    free(c->frame_of);
    checked(ftlab_close(c->device), NULL);
    return NULL;
}

int main(int arguments, char **argument)
{
    int threads = arguments > 1 && strcmp(argument[1], "threads") == 0;
    struct computer computers[] = { { .frames = 64 }, { .frames = 512 }, { .frames = 4096 }, { .frames = 16384 } };
    enum { SIZES = sizeof computers / sizeof *computers };
    pthread_t thread[SIZES];

    for (int i = 0; i < SIZES; i++) {
        if (!threads)
            simulate(&computers[i]);
        else if (pthread_create(&thread[i], NULL, simulate, &computers[i]))
            abort();
    }
    printf("%10s %8s %8s %8s %12s %10s %8s\n", "cache", "hits", "reads", "writes", "mean read", "time", "CPU busy");
    for (int i = 0; i < SIZES; i++) {
        if (threads)
            pthread_join(thread[i], NULL);
        const struct computer *c = &computers[i];
        printf("%6zu KiB %7.1f%% %8llu %8llu %9.1f us %7.1f ms %7.1f%%\n", c->frames * PAGE / 1024,
               100.0 * (double)c->hits / (PROCESSES * ACCESSES), (unsigned long long)c->reads,
               (unsigned long long)c->writes, (double)c->read_ns / 1e3 / (double)(c->reads ? c->reads : 1),
               (double)c->now_ns / 1e6, 100.0 * (double)c->busy_ns / (double)c->now_ns);
    }
    return 0;
}
