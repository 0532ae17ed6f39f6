/* What the families of invariants share: how a fault is reported, and indexes over the program built once.
 *
 * Groups run in the order of docs/validation.md. A check reports every fault it can still tell apart from an earlier
 * one's consequences; weft_check_report says whether to go on. */
#ifndef WEFT_IR_VALIDATE_PRIVATE_H
#define WEFT_IR_VALIDATE_PRIVATE_H

#include "ir_private.h"
#include "tally_private.h"
#include "violations.h"

typedef enum weft_violation {
#define WEFT_ROW(identifier, ...) VIOLATION_##identifier,
  WEFT_VIOLATIONS(WEFT_ROW) WEFT_OWN_VIOLATIONS(WEFT_ROW)
#undef WEFT_ROW
      VIOLATION_COUNT
} weft_violation;

/* One datum of a fault. */
typedef enum fact_kind {
  FACT_NUMBER,
  FACT_TEXT,
  FACT_PAIR,
  FACT_SITE,
  FACT_ENGINE,
  FACT_NOTHING,
  FACT_TENSOR, /* from here on ids */
  FACT_STAGE,
  FACT_BUFFER,
  FACT_EDGE,
  FACT_GROUP,
  FACT_SEMAPHORE,
  FACT_ITEM,
  FACT_SECTION,
  FACT_TRIP,
  FACT_LINK,
} fact_kind;

typedef struct fact {
  fact_kind kind;
  union {
    uint64_t number;
    const char *text;
    weft_pair pair;
    weft_site site;
    weft_engine engine;
  };
} fact;

static inline fact fact_id(fact_kind kind, uint64_t id) { return (fact){.kind = kind, .number = id}; }
static inline fact number(uint64_t value) { return fact_id(FACT_NUMBER, value); }
static inline fact text(const char *value) { return (fact){.kind = FACT_TEXT, .text = value}; }
static inline fact pair(weft_pair value) { return (fact){.kind = FACT_PAIR, .pair = value}; }
static inline fact site(weft_site value) { return (fact){.kind = FACT_SITE, .site = value}; }
static inline fact engine(weft_engine value) { return (fact){.kind = FACT_ENGINE, .engine = value}; }
static inline fact nothing(void) { return (fact){.kind = FACT_NOTHING}; }
static inline fact tensor(uint64_t id) { return fact_id(FACT_TENSOR, id); }
static inline fact stage(uint64_t id) { return fact_id(FACT_STAGE, id); }
static inline fact buffer(uint64_t id) { return fact_id(FACT_BUFFER, id); }
static inline fact edge(uint64_t id) { return fact_id(FACT_EDGE, id); }
static inline fact group(uint64_t id) { return fact_id(FACT_GROUP, id); }
static inline fact semaphore(uint64_t id) { return fact_id(FACT_SEMAPHORE, id); }
static inline fact item(uint64_t id) { return fact_id(FACT_ITEM, id); }
static inline fact section(uint64_t id) { return fact_id(FACT_SECTION, id); }
static inline fact trip(uint64_t id) { return fact_id(FACT_TRIP, id); }
static inline fact link_point(uint64_t id) { return fact_id(FACT_LINK, id); }

/* A site's work items by section; built by weft_check_site_items. */
typedef struct weft_site_index weft_site_index;

typedef struct check {
  const weft_program *program;
  weft_arena *arena; /* scratch */
  weft_diag *diag;
  weft_text *json;
  uint64_t limit; /* 0: none */
  uint64_t found;
  bool stop;   /* the limit is reached, or memory is exhausted */
  bool failed; /* memory is exhausted */
  bool halt;   /* what follows rests on what was found broken */
  bool groups_broken, trips_broken;
  weft_ir_ports ins, outs;
  weft_site_index *site_items;
  uint32_t *section_results; /* by section and, last, the whole program; see weft_check_result */
} check;

/* Adds a fault with its data in the order of the table. Whether to look for more. */
bool weft_check_report(check *c, weft_violation violation, const fact *facts, unsigned count);
#define REPORT(c, identifier, ...)                                                                                     \
  weft_check_report((c), VIOLATION_##identifier, (const fact[]){__VA_ARGS__},                                          \
                    sizeof((const fact[]){__VA_ARGS__}) / sizeof(fact))
/* Notes that memory is exhausted; false. */
bool weft_check_out_of_memory(check *c);
/* Zeroed scratch for `count` elements, or NULL after noting it. */
void *weft_check_array(check *c, uint64_t count, size_t size);

/* Sites as numbers in their order. */
static inline uint64_t site_key(weft_site s) { return (uint64_t)s.x << 32 | (uint64_t)s.y << 16 | s.chip; }
/* Whether an optional id is present; `bit` is its max_ids bit. */
static inline bool has_id(uint32_t id, uint8_t max_ids, uint8_t bit) { return id != WEFT_NONE || (max_ids & bit); }

/* The tensor a section's work writes (spatial-ir seed, section_result), for section UINT64_MAX or without sections the
 * whole program's; WEFT_NONE when there is none. Reports a declared output that does not exist. */
uint32_t weft_check_result(check *c, uint64_t section_index);

/* The work items of a site in a section (UINT64_MAX: all), in order. */
typedef struct weft_id_list {
  const uint32_t *ids;
  uint64_t count;
} weft_id_list;
bool weft_check_site_items(check *c);
weft_id_list weft_check_items_at(const check *c, uint64_t section_index, weft_site where);

/* Calls `visit` for every op, each before its body's. `times`: how often the loops around it run it, a trip's loop its
 * greatest count; `overflow` once that has left 64 bits; `trip`: the innermost trip loop around it, or WEFT_NONE;
 * `rounds`: the times one round of that trip runs it; `nested`: inside a loop. Stops when `visit` returns false. */
typedef struct weft_op_visit {
  uint64_t times, rounds;
  bool overflow;
  bool nested;
  uint32_t trip;
} weft_op_visit;
typedef bool weft_op_visitor(void *context, const weft_op *op, const weft_op_visit *visit);
bool weft_check_walk(const weft_op *ops, uint64_t count, weft_op_visitor *visit, void *context);

/* The groups, in order. */
void weft_validate_ids(check *c);
void weft_validate_sections(check *c);
void weft_validate_references(check *c);
void weft_validate_ports(check *c);
void weft_validate_carries(check *c);
void weft_validate_tensors(check *c);
void weft_validate_coverage(check *c);
void weft_validate_compute(check *c);
void weft_validate_indirect(check *c);
void weft_validate_plan(check *c);
void weft_validate_phase_order(check *c);
void weft_validate_placement(check *c);
void weft_validate_groups(check *c);
void weft_validate_memory(check *c);
void weft_validate_trips(check *c);
void weft_validate_programs(check *c);
void weft_validate_counts(check *c);
void weft_validate_rounds(check *c);
void weft_validate_semaphores(check *c);
void weft_validate_rendezvous(check *c);
void weft_validate_requirements(check *c);
void weft_validate_own_program(check *c);
void weft_validate_own_tensors(check *c);
void weft_validate_own_compute(check *c);
void weft_validate_own_schedule(check *c);
void weft_validate_own_placed(check *c);

#endif
