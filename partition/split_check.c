/* weft_split_check: do the programs of a split fit together, and can their links be waited for in some order. */
#include "weft/partition.h"

#include <stdlib.h>
#include <string.h>

/* One side of a crossing. */
typedef struct end {
  uint32_t from, to, chip; /* chip: the side's own */
  uint64_t link;           /* of the chip */
  uint64_t place;          /* in the link's list */
  const weft_tensor *tensor;
} end;

typedef struct checker {
  const weft_program *const *programs;
  uint32_t chips;
  weft_arena *arena;
  weft_diag *diag;
  end *sends, *receives; /* n-th send and n-th receive are one crossing, once matched */
  uint64_t send_count, receive_count, send_capacity, receive_capacity;
} checker;

static const char *after_text(const weft_program *program, uint64_t link) {
  uint64_t after = program->links[link].after;
  return after < program->section_count ? program->sections[after].name : "(the start)";
}

/* ---- collecting -----------------------------------------------------------------------------------------------------
 */

static bool add_end(checker *k, bool send, end made) {
  if (send) {
    if (!weft_arena_grow(k->arena, &k->sends, k->send_count, &k->send_capacity, sizeof *k->sends)) return false;
    k->sends[k->send_count++] = made;
  } else {
    if (!weft_arena_grow(k->arena, &k->receives, k->receive_count, &k->receive_capacity, sizeof *k->receives))
      return false;
    k->receives[k->receive_count++] = made;
  }
  return true;
}

static weft_status collect_list(checker *k, uint32_t chip, uint64_t link, bool send) {
  const weft_program *program = k->programs[chip];
  const weft_link_point *point = &program->links[link];
  const uint32_t *tensors = send ? point->sends : point->receives;
  const uint16_t *peers = send ? point->send_peers : point->receive_peers;
  for (uint64_t i = 0; i < (send ? point->send_count : point->receive_count); i++) {
    if (tensors[i] >= program->tensor_count)
      return weft_error(k->diag, WEFT_INVALID, "name a tensor of the chip's program",
                        "chip %u, link point %llu: there is no tensor %u", chip, (unsigned long long)link, tensors[i]);
    const weft_tensor *tensor = &program->tensors[tensors[i]];
    uint32_t peer = peers ? peers[i] : WEFT_NONE;
    if (peers && (peer >= k->chips || peer == chip))
      return weft_error(k->diag, WEFT_INVALID, "name another chip of the machine",
                        "chip %u, link point %llu after %s: '%s' crosses to chip %u", chip, (unsigned long long)link,
                        after_text(program, link), tensor->name, peer);
    end made = {
        .from = send ? chip : peer, .to = send ? peer : chip, .chip = chip, .link = link, .place = i, .tensor = tensor};
    if (!add_end(k, send, made)) return weft_error_memory(k->diag);
  }
  return WEFT_OK;
}

static weft_status collect(checker *k) {
  for (uint32_t chip = 0; chip < k->chips; chip++)
    for (uint64_t l = 0; l < k->programs[chip]->link_count; l++) {
      weft_status status = collect_list(k, chip, l, true);
      if (status == WEFT_OK) status = collect_list(k, chip, l, false);
      if (status != WEFT_OK) return status;
    }
  return WEFT_OK;
}

/* ---- crossings without peers
 * -------------------------------------------------------------------------------------------- */

static int by_tensor_name(const void *a, const void *b) {
  const end *x = a, *y = b;
  int order = strcmp(x->tensor->name, y->tensor->name);
  return order ? order : x->chip < y->chip ? -1 : x->chip > y->chip;
}

/* The one send of a tensor called so; NULL when there is none or more than one. */
static const end *only_send(const checker *k, const char *name) {
  const end *found = NULL;
  for (uint64_t low = 0, high = k->send_count; low < high;) {
    uint64_t middle = low + (high - low) / 2;
    int order = strcmp(k->sends[middle].tensor->name, name);
    if (order == 0) found = &k->sends[middle];
    if (order >= 0)
      high = middle;
    else
      low = middle + 1;
  }
  bool again = found && found + 1 < k->sends + k->send_count && strcmp(found[1].tensor->name, name) == 0;
  return again ? NULL : found;
}

/* Dumps of other compilers do not say who is at the other end: tensors with one name are one tensor. */
static weft_status find_peers(checker *k) {
  uint64_t named = 0;
  for (uint64_t i = 0; i < k->send_count; i++) named += k->sends[i].to != WEFT_NONE;
  for (uint64_t i = 0; i < k->receive_count; i++) named += k->receives[i].from != WEFT_NONE;
  if (named == k->send_count + k->receive_count) return WEFT_OK;
  if (named > 0)
    return weft_error(k->diag, WEFT_INVALID, "give peers everywhere or nowhere",
                      "some link points name their peers and others do not");
  if (k->send_count) qsort(k->sends, k->send_count, sizeof *k->sends, by_tensor_name);
  end *paired = WEFT_NEW_ARRAY(k->arena, end, k->receive_count);
  bool *met = WEFT_NEW_ARRAY(k->arena, bool, k->send_count);
  if (!paired || !met) return weft_error_memory(k->diag);
  for (uint64_t i = 0; i < k->receive_count; i++) {
    const end *send = only_send(k, k->receives[i].tensor->name);
    if (!send || send->chip == k->receives[i].chip)
      return weft_error(k->diag, WEFT_INVALID, "send each tensor from one chip, under one name",
                        "chip %u receives '%s' after %s, which no single other chip sends", k->receives[i].chip,
                        k->receives[i].tensor->name, after_text(k->programs[k->receives[i].chip], k->receives[i].link));
    k->receives[i].from = send->chip;
    met[send - k->sends] = true;
    paired[i] = *send;
    paired[i].to = k->receives[i].chip;
  }
  for (uint64_t i = 0; i < k->send_count; i++)
    if (!met[i])
      return weft_error(k->diag, WEFT_INVALID, "receive it, or do not send it",
                        "chip %u sends '%s' after %s, and no chip receives it", k->sends[i].chip,
                        k->sends[i].tensor->name, after_text(k->programs[k->sends[i].chip], k->sends[i].link));
  k->sends = paired;
  k->send_count = k->receive_count;
  return WEFT_OK;
}

/* ---- pairing
 * --------------------------------------------------------------------------------------------------------------- */

static int by_pair(const void *a, const void *b) {
  const end *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  if (x->to != y->to) return x->to < y->to ? -1 : 1;
  if (x->link != y->link) return x->link < y->link ? -1 : 1;
  return x->place < y->place ? -1 : x->place > y->place;
}

static bool same_pair(const end *a, const end *b) { return a->from == b->from && a->to == b->to; }

static bool same_partial(const weft_tensor *a, const weft_tensor *b) {
  if (a->has_partial != b->has_partial) return false;
  return !a->has_partial || (a->partial.pool == b->partial.pool && a->partial.first == b->partial.first &&
                             a->partial.count == b->partial.count && a->partial.of == b->partial.of);
}

/* Both sides of a crossing must see one tensor. */
static weft_status match(checker *k, const end *send, const end *receive) {
  const weft_tensor *a = send->tensor, *b = receive->tensor;
  const char *what = strcmp(a->name, b->name) != 0 ? "their names differ: the order is not the same"
                     : a->elems.rows != b->elems.rows || a->elems.cols != b->elems.cols ? "their extents differ"
                     : a->dtype != b->dtype                                             ? "their formats differ"
                     : !same_partial(a, b) ? "they hold different segments of a fold"
                                           : NULL;
  if (!what) return WEFT_OK;
  return weft_error(
      k->diag, WEFT_INVALID, "split the whole-machine program again",
      "chip %u sends '%s' (%llu x %llu %s) after %s where chip %u receives '%s' (%llu x %llu %s) after %s: %s",
      send->from, a->name, (unsigned long long)a->elems.rows, (unsigned long long)a->elems.cols,
      weft_format_name(a->dtype), after_text(k->programs[send->from], send->link), receive->to, b->name,
      (unsigned long long)b->elems.rows, (unsigned long long)b->elems.cols, weft_format_name(b->dtype),
      after_text(k->programs[receive->to], receive->link), what);
}

static weft_status unmatched(checker *k, const end *lone, bool send) {
  return weft_error(k->diag, WEFT_INVALID, "split the whole-machine program again",
                    "chip %u %s '%s' %s chip %u after %s, which chip %u does not %s", lone->chip,
                    send ? "sends" : "receives", lone->tensor->name, send ? "to" : "from", send ? lone->to : lone->from,
                    after_text(k->programs[lone->chip], lone->link), send ? lone->to : lone->from,
                    send ? "receive" : "send");
}

static weft_status pair_up(checker *k) {
  if (k->send_count) qsort(k->sends, k->send_count, sizeof *k->sends, by_pair);
  if (k->receive_count) qsort(k->receives, k->receive_count, sizeof *k->receives, by_pair);
  for (uint64_t i = 0; i < weft_max_u64(k->send_count, k->receive_count); i++) {
    if (i >= k->send_count) return unmatched(k, &k->receives[i], false);
    if (i >= k->receive_count) return unmatched(k, &k->sends[i], true);
    const end *send = &k->sends[i], *receive = &k->receives[i];
    if (!same_pair(send, receive)) {
      bool lone_send = send->from != receive->from ? send->from < receive->from : send->to < receive->to;
      return unmatched(k, lone_send ? send : receive, lone_send);
    }
    weft_status status = match(k, send, receive);
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}

/* ---- what is sent is there, what is received is free
 * ---------------------------------------------------------------------- */

static weft_status check_storage(checker *k, uint32_t chip) {
  const weft_program *program = k->programs[chip];
  uint64_t *stored = WEFT_NEW_ARRAY(k->arena, uint64_t, program->tensor_count); /* 1 + the section of the last store */
  if (!stored) return weft_error_memory(k->diag);
  uint64_t section = 0;
  for (uint64_t i = 0; i < program->stage_count; i++) {
    while (section < program->section_count && i >= program->sections[section].stages.end) section++;
    if (program->stages[i].kind == WEFT_STAGE_STORE && program->stages[i].store.tensor < program->tensor_count)
      stored[program->stages[i].store.tensor] = section < program->section_count ? section + 1 : 1;
  }
  for (uint64_t l = 0; l < program->link_count; l++) {
    const weft_link_point *point = &program->links[l];
    uint64_t before = point->after == UINT64_MAX ? 0 : point->after + 1;
    for (uint64_t i = 0; i < point->receive_count; i++) {
      const weft_tensor *tensor = &program->tensors[point->receives[i]];
      if (stored[point->receives[i]] || tensor->role != WEFT_ROLE_INPUT)
        return weft_error(k->diag, WEFT_INVALID, "receive into an Input that no stage stores",
                          "chip %u receives '%s' after %s, which %s", chip, tensor->name, after_text(program, l),
                          tensor->role != WEFT_ROLE_INPUT ? "is no Input" : "it stores itself");
    }
    for (uint64_t i = 0; i < point->send_count; i++) {
      const weft_tensor *tensor = &program->tensors[point->sends[i]];
      bool source = tensor->role == WEFT_ROLE_INPUT || tensor->role == WEFT_ROLE_PARAM;
      if (!source && (stored[point->sends[i]] == 0 || stored[point->sends[i]] > before))
        return weft_error(k->diag, WEFT_INVALID, "send it after the section that stores it",
                          "chip %u sends '%s' after %s, before it is stored", chip, tensor->name,
                          after_text(program, l));
    }
  }
  return WEFT_OK;
}

/* ---- the order
 * ------------------------------------------------------------------------------------------------------------- */

/* Two nodes a link point, a chip's in program order: 2 l its sends, 2 l + 1 its receives. A node waits for the one
 * before it on its chip, and a receive for the sends it needs. */
typedef struct order {
  checker *k;
  uint64_t *first; /* by chip: its first node */
  uint64_t node_count;
  uint64_t *wait_begin;  /* by node: its crossings are waits[wait_begin[n] .. wait_begin[n + 1]) */
  uint64_t *waits;       /* indices of receives */
  uint8_t *state;        /* 0 new, 1 on the path, 2 done */
  uint64_t *path, *next; /* by depth, by node: the next wait to look at */
} order;

static bool order_start(order *o, checker *k) {
  *o = (order){.k = k, .first = WEFT_NEW_ARRAY(k->arena, uint64_t, (uint64_t)k->chips + 1)};
  if (!o->first) return false;
  for (uint32_t c = 0; c < k->chips; c++) o->first[c + 1] = o->first[c] + 2 * k->programs[c]->link_count;
  o->node_count = o->first[k->chips];
  o->wait_begin = WEFT_NEW_ARRAY(k->arena, uint64_t, o->node_count + 2);
  o->waits = WEFT_NEW_ARRAY(k->arena, uint64_t, k->receive_count);
  o->state = WEFT_NEW_ARRAY(k->arena, uint8_t, o->node_count);
  o->path = WEFT_NEW_ARRAY(k->arena, uint64_t, o->node_count);
  o->next = WEFT_NEW_ARRAY(k->arena, uint64_t, o->node_count);
  if (weft_arena_failed(k->arena)) return false;
  for (uint64_t i = 0; i < k->receive_count; i++)
    o->wait_begin[o->first[k->receives[i].to] + 2 * k->receives[i].link + 3]++;
  for (uint64_t n = 0; n < o->node_count; n++) o->wait_begin[n + 2] += o->wait_begin[n + 1];
  for (uint64_t i = 0; i < k->receive_count; i++)
    o->waits[o->wait_begin[o->first[k->receives[i].to] + 2 * k->receives[i].link + 2]++] = i;
  return true;
}

static uint32_t chip_of(const order *o, uint64_t node) {
  uint32_t low = 0, high = o->k->chips;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (o->first[middle] <= node)
      low = middle;
    else
      high = middle;
  }
  while (o->first[low + 1] <= node) low++; /* chips without links share their first node with the next */
  return low;
}

/* What a node waits for: number `index`, the crossings first, then the node before it; node_count when there is no
 * more. */
static uint64_t wait_of(const order *o, uint64_t node, uint64_t index) {
  uint64_t crossings = o->wait_begin[node + 1] - o->wait_begin[node];
  if (index < crossings) {
    const end *send = &o->k->sends[o->waits[o->wait_begin[node] + index]];
    return o->first[send->from] + 2 * send->link;
  }
  return index == crossings && node > o->first[chip_of(o, node)] ? node - 1 : o->node_count;
}

static weft_status report_cycle(const order *o, uint64_t depth, uint64_t again) {
  weft_text text = {0};
  uint64_t begin = depth;
  while (o->path[begin] != again) begin--;
  for (uint64_t d = begin; d <= depth; d++) {
    uint64_t node = o->path[d];
    uint32_t chip = chip_of(o, node);
    uint64_t link = (node - o->first[chip]) / 2;
    weft_text_printf(&text, "%schip %u's %s at link point %llu after %s", d > begin ? " waits for " : "", chip,
                     (node - o->first[chip]) % 2 ? "receives" : "sends", (unsigned long long)link,
                     after_text(o->k->programs[chip], link));
  }
  weft_text_puts(&text, " waits for the first");
  weft_status status = text.failed
                           ? weft_error_memory(o->k->diag)
                           : weft_error(o->k->diag, WEFT_INVALID, "move a send before the receive that blocks it",
                                        "the links deadlock: %s", text.data);
  weft_text_free(&text);
  return status;
}

/* A depth-first walk along waits; a node met again on the path closes a cycle. */
static weft_status walk(order *o, uint64_t root) {
  uint64_t depth = 0;
  o->path[0] = root;
  o->state[root] = 1;
  for (;;) {
    uint64_t node = o->path[depth], wait = wait_of(o, node, o->next[node]++);
    if (wait == o->node_count) {
      o->state[node] = 2;
      if (depth-- == 0) return WEFT_OK;
    } else if (o->state[wait] == 1) {
      return report_cycle(o, depth, wait);
    } else if (o->state[wait] == 0) {
      o->state[wait] = 1;
      o->path[++depth] = wait;
    }
  }
}

static weft_status check_order(checker *k) {
  order o;
  if (!order_start(&o, k)) return weft_error_memory(k->diag);
  for (uint64_t node = 0; node < o.node_count; node++) {
    weft_status status = o.state[node] == 0 ? walk(&o, node) : WEFT_OK;
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}

static weft_status check_all(checker *k) {
  weft_status status = collect(k);
  if (status == WEFT_OK) status = find_peers(k);
  if (status == WEFT_OK) status = pair_up(k);
  for (uint32_t chip = 0; chip < k->chips && status == WEFT_OK; chip++) status = check_storage(k, chip);
  return status == WEFT_OK ? check_order(k) : status;
}

weft_status weft_split_check(const weft_program *const *programs, uint32_t chips, weft_diag *diag) {
  checker k = {.programs = programs, .chips = chips, .arena = weft_arena_new(), .diag = diag};
  if (!k.arena) return weft_error_memory(diag);
  weft_status status = check_all(&k);
  weft_arena_free(k.arena);
  return status;
}
