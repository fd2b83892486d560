/*
 * ftlab inside your program: one simulated flash device, and you own the time.
 *
 * Times are nanoseconds of simulated time, offsets and sizes are bytes, and strings are UTF-8 and end in NUL. Every
 * function returns a code, which is FTLAB_OK, FTLAB_MORE, or an error (a negative number), except for the three that
 * return text, which cannot fail; ftlab_last_error says more about an error. After an error nothing has changed unless
 * the function says so. FTLAB_INVALID (for example for a NULL where none is allowed), FTLAB_BUSY and FTLAB_INTERNAL can
 * come from every call with an object.
 *
 * Objects share nothing: each may be used by another thread. Two calls at once with one object: the second gets
 * FTLAB_BUSY and changes nothing. An object is memory alone: no thread, no open file. After fork(), parent and
 * child each have their own copy and may both go on; if another thread was within a call at that moment, the child's
 * object stays busy. Using an object after ftlab_close is undefined.
 *
 * Generated from crates/capi/src/lib.rs by `make header`.
 */

#ifndef FTLAB_H
#define FTLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * As an arrival time: now.
 */
#define FTLAB_NOW 18446744073709551615ull

/**
 * No time: nothing can happen.
 */
#define FTLAB_NEVER 18446744073709551615ull

/**
 * Flag of ftlab_options: verify every invariant after every request (slow).
 */
#define FTLAB_CHECK 1

/**
 * The outcome of a call.
 */
typedef enum ftlab_code {
  /**
   * Done.
   */
  FTLAB_OK = 0,
  /**
   * Done up to the last completion that fits the buffer; call again for the rest.
   */
  FTLAB_MORE = 1,
  /**
   * Another thread is in a call with this object.
   */
  FTLAB_BUSY = -1,
  /**
   * An argument is wrong: NULL, not UTF-8, or a value that is not allowed.
   */
  FTLAB_INVALID = -2,
  /**
   * The configuration or the saved state is at fault.
   */
  FTLAB_CONFIG = -3,
  /**
   * The request has no bytes, or bytes that the device does not have.
   */
  FTLAB_RANGE = -4,
  /**
   * A time is in the past, before the last request submitted, or more than a century after the start.
   */
  FTLAB_TIME = -5,
  /**
   * The power is not in the state that the call needs, or the device was not made for power cuts.
   */
  FTLAB_POWER = -6,
  /**
   * A bug in ftlab. The object can only be closed now.
   */
  FTLAB_INTERNAL = -7,
} ftlab_code;

/**
 * One simulated device.
 */
typedef struct ftlab_sim ftlab_sim;

/**
 * How to make a device. Zeros are the defaults; ftlab_open reads this struct and does not keep it.
 */
typedef struct ftlab_options {
  /**
   * Settings that override the configuration's, each "key=value", for example "host.scheduler=noop"; may
   * be NULL if there are none.
   */
  const char *const *set;
  /**
   * Number of settings in `set`.
   */
  size_t set_count;
  /**
   * File with the state at time 0 to start from, instead of preconditioning (`ftlab run --save-state`); or
   * NULL.
   */
  const char *load_state;
  /**
   * FTLAB_CHECK, or 0.
   */
  uint32_t flags;
} ftlab_options;

/**
 * A request.
 */
typedef struct ftlab_request {
  /**
   * Arrival time, ns, or FTLAB_NOW; neither before now nor before the arrival of the last request submitted. A
   * request that arrives now does so after the decisions already taken.
   */
  uint64_t at_ns;
  /**
   * First byte.
   */
  uint64_t offset;
  /**
   * Bytes.
   */
  uint64_t size;
  /**
   * Stream of the request, at most 65535: the tenant, or the placement handle of the data; 0 for none.
   */
  uint32_t stream;
  /**
   * 'R' read, 'W' write, 'T' trim or 'F' flush; a flush ignores offset and size.
   */
  char op;
  /**
   * If not 0, the write completes only when it would survive a power cut.
   */
  uint8_t fua;
} ftlab_request;

/**
 * A completed request: a row of the per-request file. If host.merge_limit merges requests, every submitted
 * one still has a row of its own.
 */
typedef struct ftlab_completion {
  /**
   * Number of the submission, from 1.
   */
  uint64_t id;
  /**
   * Arrival at the host, ns.
   */
  uint64_t arrival_ns;
  /**
   * Time at which it was handed to the device, ns.
   */
  uint64_t dispatch_ns;
  /**
   * Completion time, ns; for a failed request, the time at which it was refused.
   */
  uint64_t complete_ns;
  /**
   * First byte.
   */
  uint64_t offset;
  /**
   * Bytes.
   */
  uint64_t size;
  /**
   * Batch, from 1; 0: none.
   */
  uint64_t batch;
  /**
   * Channel batch within its chip batch, from 1; 0: none.
   */
  uint64_t channel_batch;
  /**
   * Mapping-cache misses of its pages; of merged requests, the first carries all of them.
   */
  uint32_t mapping_misses;
  /**
   * Pages of a read that the device had in RAM, in its write buffer or read ahead; of merged requests, each carries
   * all of them.
   */
  uint32_t buffered;
  /**
   * 'R', 'W', 'T' or 'F'.
   */
  char op;
  /**
   * Whether it was dispatched ahead of others by the scheduler's choice.
   */
  bool prioritized;
  /**
   * Whether it was dispatched by deadline.
   */
  bool expired;
  /**
   * Whether the device was read-only and refused it, or part of it.
   */
  bool failed;
} ftlab_completion;

/**
 * The effects of a power cut.
 */
typedef struct ftlab_cut_report {
  /**
   * Programs and erases finished since the last cut.
   */
  uint64_t operations;
  /**
   * Programs torn.
   */
  uint64_t torn_programs;
  /**
   * Erases torn.
   */
  uint64_t torn_erases;
} ftlab_cut_report;

/**
 * The cost of a recovery.
 */
typedef struct ftlab_recovery {
  /**
   * Pages whose spare areas were read.
   */
  uint64_t scan_reads;
  /**
   * Translation pages and trims read.
   */
  uint64_t map_reads;
  /**
   * Other pages read, while mappings were written back.
   */
  uint64_t gc_reads;
  /**
   * Pages programmed.
   */
  uint64_t programs;
  /**
   * Blocks erased.
   */
  uint64_t erases;
  /**
   * Simulated time, ns; the clock has moved on by this much.
   */
  uint64_t elapsed_ns;
} ftlab_recovery;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a device at time 0, preconditioned or loaded, without a workload. `config` is a preset's name or a
 * TOML file, as on the command line; `options` may be NULL. `*sim` is the new object, which the caller owns
 * and passes to ftlab_close; it is NULL after an error, and ftlab_last_error(NULL) in the same thread then
 * says more.
 *
 * FTLAB_CONFIG: the configuration, a setting or the state is at fault.
 */
int ftlab_open(const char *config, const struct ftlab_options *options, struct ftlab_sim **sim);

/**
 * Frees an object and everything it owns. NULL is allowed and does nothing.
 *
 * FTLAB_BUSY: another thread is in a call with the object, which stays open.
 */
int ftlab_close(struct ftlab_sim *sim);

/**
 * Submits a request. `*id` becomes its number, from 1 in the order of submission; `id` may be NULL.
 *
 * FTLAB_RANGE, FTLAB_TIME, FTLAB_POWER; FTLAB_INVALID also for a wrong op or stream.
 */
int ftlab_submit(struct ftlab_sim *sim, const struct ftlab_request *request, uint64_t *id);

/**
 * Submits `count` requests, in order. Their numbers are `*first_id` and those that follow; `*submitted` is the number
 * of requests taken: all or, after an error, those before the one at fault. Both pointers may be NULL.
 *
 * FTLAB_RANGE, FTLAB_TIME, FTLAB_POWER; FTLAB_INVALID also for a wrong op or stream: ftlab_last_error names
 * the row.
 */
int ftlab_submit_many(struct ftlab_sim *sim,
                      const struct ftlab_request *requests,
                      size_t count,
                      uint64_t *first_id,
                      size_t *submitted);

/**
 * Stores in `*at_ns` the time at which something can happen without another submission, ns, or FTLAB_NEVER
 * if nothing can.
 */
int ftlab_next_event_ns(struct ftlab_sim *sim, uint64_t *at_ns);

/**
 * Stores the simulated time in `*now_ns`, ns.
 */
int ftlab_now_ns(struct ftlab_sim *sim, uint64_t *now_ns);

/**
 * Lets everything up to and including `until_ns` happen. Afterwards the time is `until_ns`, even if nothing happened.
 * Completions go into `completions`, a buffer that the caller owns and that has room for `capacity` of them; `*count`
 * becomes the number stored.
 *
 * FTLAB_MORE: the buffer is full. The time is that of the last completion in it; completions of the same instant that
 * did not fit are kept, and come first in the next call, whether with the same `until_ns` or another. That call may
 * find that there are none left. With a capacity of 0, with which `completions` and `count` may be NULL, the call
 * stops at the first completion and keeps it.
 *
 * FTLAB_TIME: `until_ns` is in the past, or FTLAB_NEVER. FTLAB_POWER: the power is off.
 */
int ftlab_advance(struct ftlab_sim *sim,
                  uint64_t until_ns,
                  struct ftlab_completion *completions,
                  size_t capacity,
                  size_t *count);

/**
 * Lets everything happen up to the completion of the last request submitted, and stops there: the device's own work,
 * for which no request waits, does not begin at that instant. Completions and FTLAB_MORE are as in ftlab_advance.
 *
 * FTLAB_POWER: the power is off.
 */
int ftlab_drain(struct ftlab_sim *sim,
                struct ftlab_completion *completions,
                size_t capacity,
                size_t *count);

/**
 * Stores in `*json` the result of everything up to now, as `ftlab run --json` writes it. The object owns it
 * until the next call of this function, or of ftlab_close, with that object. The call has no effect on the
 * simulation. In the engine block, wall_s is the time since ftlab_open.
 */
int ftlab_result_json(struct ftlab_sim *sim, const char **json);

/**
 * Loses power now: operations under way are torn as `seed` decides, memory is lost, and requests that have not
 * completed never will (those that completed and were kept because they did not fit are still delivered). The
 * configuration needs ftl.power_safe. `report` is filled in; it may be NULL.
 *
 * FTLAB_POWER: the device was not made for power cuts, or the power is already off.
 */
int ftlab_cut(struct ftlab_sim *sim,
              uint64_t seed,
              struct ftlab_cut_report *report);

/**
 * Brings the device up again from its flash alone. Time moves on by the duration of the recovery; the result's figures
 * start again from zero. `recovery` is filled in; it may be NULL.
 *
 * FTLAB_POWER: the power is on.
 */
int ftlab_recover(struct ftlab_sim *sim,
                  struct ftlab_recovery *recovery);

/**
 * Returns what a code means, in a few words; any number is allowed. The text is static.
 */
const char *ftlab_strerror(int code);

/**
 * Returns the message of the last call with this object that failed or, with NULL, of the last ftlab_open of
 * this thread that failed. It is empty if none has. The object owns the text until the next call with it
 * fails, or ftlab_close; for NULL, the thread owns it until its next ftlab_open. FTLAB_BUSY and a `sim` of
 * NULL leave no text.
 */
const char *ftlab_last_error(const struct ftlab_sim *sim);

/**
 * Returns the library's version, "1.2.3". The text is static.
 */
const char *ftlab_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FTLAB_H */
