/* weft/plan.h: the passes from a Template to a Scheduled program, the certificate, the evaluator.
 *
 * Source: spatial-ir seed (phases, choreography, validate), design 2-spatial-program.md "Phases and passes", "The
 * certificate", "The evaluator". */
#ifndef WEFT_PLAN_H
#define WEFT_PLAN_H

#include "weft/ir.h"
#include "weft/target.h"
#include "weft/tensor_file.h"

/** The passes in order: identifier, name, phase it needs, phase it leaves, one-line help. */
#define WEFT_PASSES(ROW)                                                                                               \
  ROW(tile, "tile", TEMPLATE, TILED, "fix each section's block plan and work items")                                   \
  ROW(place, "place", TILED, PLACED, "clone stages per site, pin them to engines")                                     \
  ROW(fuse_readers, "fuse_readers", PLACED, PLACED, "turn equal reads along a row or column into one multicast")       \
  ROW(size_buffers, "size_buffers", PLACED, SIZED, "fix buffer depths and local memory offsets")                       \
  ROW(synthesize_handshakes, "synthesize_handshakes", SIZED, SCHEDULED, "emit the engine programs and rendezvous")     \
  ROW(verify, "verify", SCHEDULED, VERIFIED, "prove the schedule: the certificate")

typedef struct weft_options {
  const char *stop_after; /**< pass name or NULL */
  const char *dump_after; /**< pass name or NULL: dump to `dump` */
  weft_text *dump;
  bool validate_between; /**< validate after every pass: a violation is that pass's fault and names it */
  weft_text *report;     /**< why the winning plans won; may be NULL */
} weft_options;

#define WEFT_DECLARE_PASS(identifier, name, needs, leaves, help)                                                       \
  weft_status weft_pass_##identifier(weft_program *program, const weft_target *target, const weft_options *options,    \
                                     weft_diag *diag);
WEFT_PASSES(WEFT_DECLARE_PASS)

/** Runs the passes a program still needs, from its phase on, to `stop_after` or the end. */
weft_status weft_plan(weft_program *program, const weft_target *target, const weft_options *options, weft_diag *diag);

/** Checks the integer ranges of a valid program in any phase: refuses, with the stage, what would wrap silently: a
 * requantisation whose product may leave 64 bits. */
weft_status weft_check_ranges(const weft_program *program, weft_diag *diag);

/** The Template that a Scheduled program of weft's was planned from for `target`: units are put together again from
 * their copies, and planning the result must give the program byte for byte. For commands that take either form.
 * Errors: WEFT_INVALID when it is not such a program (another compiler's schedule, an edited one, another target). */
weft_status weft_program_template(const weft_program *planned, const weft_target *target, weft_program **program,
                                  weft_diag *diag);

/** What the certificate rests on (`weft certify`). */
typedef struct weft_certificate {
  uint64_t programs, ops, steps, sections;
  uint64_t buffers, semaphores, tiles_written;
  bool partial_proved; /**< false: no partial information in the program */
} weft_certificate;
/** Proves a Scheduled program: for every interleaving it ends, no buffer over- or underflows, every wait is matched,
 * every address is inside its tensor, every written tile is written once (a state at most once), no tile is read before
 * it is written, no local byte is owned twice within a phase, no semaphore waited on before its reset, every partial
 * tensor reduced, packed integers fit. Refusals name engine, op, stage, section, tensor; a deadlock shows the cycle of
 * who waits for whom. docs/certificate.md. */
weft_status weft_certify(const weft_program *program, weft_certificate *certificate, weft_diag *diag);

/** How the evaluator interleaves engines. */
typedef struct weft_evaluate_options {
  bool random; /**< a seeded random interleaving instead of the fixed order */
  uint64_t seed;
  uint64_t steps;      /**< runs, chaining states; at least 1 */
  const char *advance; /**< dataset of an Input of integers that is one greater at every step; NULL: none */
} weft_evaluate_options;
/** Runs a Scheduled program op by op with real pages: one chip's program without links, or a whole machine. Datasets by
 * tensor name or by `shard.of`. The oracle: it faults, with op and tile, where hardware would go wrong silently. */
weft_status weft_evaluate(const weft_program *program, const weft_evaluate_options *options, const weft_array_set *in,
                          weft_array_set *out, weft_diag *diag);

#endif
