/*
 * Replays a trace through the library: what `ftlab run` does, from C. The result is printed as JSON.
 *
 *     replay CONFIG TRACE.csv AHEAD ROOM [KEY=VALUE ...]
 *
 * TRACE.csv is ftlab's own layout, time_ns,op,offset,size (`ftlab trace convert`). Requests are submitted AHEAD at a
 * time, and as many are always known to the device ahead of their arrival; completions are taken ROOM at a time.
 * The numbers depend on neither AHEAD nor ROOM.
 */
#include <ftlab.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int checked(int code, const ftlab_sim *device)
{
    if (code < 0) {
        fprintf(stderr, "replay: %s: %s\n", ftlab_strerror(code), ftlab_last_error(device));
        exit(1);
    }
    return code;
}

static void fail(const char *what, const char *which)
{
    fprintf(stderr, "replay: %s: %s\n", which, what);
    exit(1);
}

/* Reads a row of the trace; returns 0 if the line is not one. */
static int read_row(const char *line, ftlab_request *request)
{
    char *at;
    *request = (ftlab_request){ .at_ns = strtoull(line, &at, 10) };
    if (*at++ != ',' || !*at)
        return 0;
    request->op = *at++;
    request->fua = *at == 'F';
    at += request->fua;
    if (*at++ != ',')
        return 0;
    request->offset = strtoull(at, &at, 10);
    if (*at++ != ',')
        return 0;
    request->size = strtoull(at, &at, 10);
    return *at == '\n';
}

static ftlab_request *read_trace(const char *path, size_t *count)
{
    FILE *file = fopen(path, "r");
    ftlab_request *requests = NULL;
    size_t room = 0;
    char line[256];

    if (!file || !fgets(line, sizeof line, file) || strcmp(line, "time_ns,op,offset,size\n") != 0)
        fail("no trace in ftlab's own layout", path);
    for (*count = 0; fgets(line, sizeof line, file); ++*count) {
        ftlab_request request;
        if (!read_row(line, &request))
            fail(line, path);
        if (*count == room) {
            room = room ? 2 * room : 1024;
            requests = realloc(requests, room * sizeof *requests);
            if (!requests)
                fail("no memory", path);
        }
        requests[*count] = request;
    }
    fclose(file);
    return requests;
}

static uint64_t sum_ns, completed;

static void look_at(const ftlab_completion *done, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum_ns += done[i].complete_ns - done[i].arrival_ns;
    completed += count;
}

static void replay(ftlab_sim *device, const ftlab_request *requests, size_t left, size_t ahead, size_t room)
{
    ftlab_completion *done = malloc(room * sizeof *done);
    size_t count;
    int more;

    if (!done)
        fail("no memory", "ROOM");
    while (left > 0) {
        size_t chunk = left < ahead ? left : ahead;
        uint64_t now_ns;
        checked(ftlab_submit_many(device, requests, chunk, NULL, NULL), device);
        checked(ftlab_now_ns(device, &now_ns), device);
        /* Advances to just before the first: all requests of one time must be known before that time is reached. */
        if (requests->at_ns > now_ns) {
            do {
                more = checked(ftlab_advance(device, requests->at_ns - 1, done, room, &count), device);
                look_at(done, count);
            } while (more == FTLAB_MORE);
        }
        requests += chunk;
        left -= chunk;
    }
    do {
        more = checked(ftlab_drain(device, done, room, &count), device);
        look_at(done, count);
    } while (more == FTLAB_MORE);
    free(done);
}

int main(int arguments, char **argument)
{
    ftlab_sim *device;
    const char *json;
    size_t count;

    if (arguments < 5)
        fail("CONFIG TRACE.csv AHEAD ROOM [KEY=VALUE ...]", "usage");
    ftlab_options options = { .set = (const char *const *)argument + 5, .set_count = (size_t)arguments - 5 };
    checked(ftlab_open(argument[1], &options, &device), NULL);
    ftlab_request *requests = read_trace(argument[2], &count);
    replay(device, requests, count, strtoul(argument[3], NULL, 10), strtoul(argument[4], NULL, 10));
    free(requests);
    checked(ftlab_result_json(device, &json), device);
    puts(json);
    fprintf(stderr, "replay: %" PRIu64 " completions, mean latency %.1f us\n", completed,
            (double)sum_ns / 1e3 / (double)(completed ? completed : 1));
    return checked(ftlab_close(device), NULL);
}
