/* How the k of a product is cut into K blocks and runs. */
#include "tiles_private.h"

typedef struct plan_builder {
  weft_tile_plan *plan;
  weft_tile_run *runs;
  uint64_t run_count;
  uint64_t k; /* planned so far */
  uint64_t block_k;
} plan_builder;

static void close_block(plan_builder *b) {
  weft_tile_plan *plan = b->plan;
  uint64_t first = plan->block_count ? (uint64_t)(plan->blocks[plan->block_count - 1].runs - b->runs) +
                                           plan->blocks[plan->block_count - 1].run_count
                                     : 0;
  if (first == b->run_count) return;
  plan->blocks[plan->block_count++] = (weft_tile_block){
      .k0 = b->k - b->block_k, .k = b->block_k, .runs = b->runs + first, .run_count = (uint32_t)(b->run_count - first)};
  b->block_k = 0;
}

static void add_run(plan_builder *b, uint64_t length, bool resumes, uint32_t merge, uint8_t store) {
  b->runs[b->run_count++] =
      (weft_tile_run){.length = (uint32_t)length, .resumes = resumes, .merge = merge, .store = store};
  b->k += length;
  b->block_k += length;
}

/* Segment `index` of `count`: merged with the subtrees to its left that it completes; the last one with all that are
 * left. */
static void add_segment(plan_builder *b, uint64_t length, uint32_t index, uint32_t count, uint32_t depth) {
  bool last = index + 1 == count;
  uint32_t completed = (index ^ (index + 1)) >> 1; /* the ones that index ends in */
  uint32_t merge = last ? index : completed;
  uint8_t store = (uint8_t)(last ? WEFT_TILE_RESULT : __builtin_popcount(completed));
  uint64_t pieces = weft_max_u64(1, weft_ceil_div(length, depth)), done = 0;
  uint64_t piece = (weft_ceil_div(length, pieces) + 7) / 8 * 8;
  if (pieces > 1) close_block(b);
  while (length - done > piece) {
    add_run(b, piece, done > 0, 0, WEFT_TILE_CURRENT);
    close_block(b);
    done += piece;
  }
  add_run(b, length - done, done > 0, merge, store);
}

/* Segments a K block takes: a power of two, so that few levels outlive a block. */
static uint32_t segments_of_block(uint64_t k, uint32_t segments, uint32_t depth) {
  uint64_t longest = weft_max_u64(1, weft_segment_begin(k, segments, 1));
  uint32_t together = 1;
  while (together < segments && longest * together * 2 <= depth) together *= 2;
  return together;
}

/* A place outlives a block when a later block reads it before it writes it. */
static void find_kept(weft_tile_plan *plan) {
  uint32_t kept = 0;
  for (uint64_t i = 0; i < plan->block_count; i++) {
    uint32_t written = 0;
    for (uint32_t r = 0; r < plan->blocks[i].run_count; r++) {
      const weft_tile_run *run = &plan->blocks[i].runs[r];
      kept |= (run->merge | (uint32_t)run->resumes << WEFT_TILE_CURRENT) & ~written;
      written |= UINT32_C(1) << run->store;
    }
  }
  plan->kept_count = 0;
  for (uint8_t place = 0; place < WEFT_TILE_PLACES; place++)
    if (kept >> place & 1) plan->kept[plan->kept_count++] = place;
}

bool weft_tile_plan_make(weft_chip *chip, uint64_t k, uint32_t segments, uint32_t depth, weft_tile_plan *plan) {
  uint32_t count = weft_segments_effective(k, segments);
  if (count > UINT32_C(1) << WEFT_TILE_LEVELS || depth < 8) return false;
  uint64_t most = count + 2 * (k / (depth - 7)) + 2; /* runs, and so blocks */
  uint64_t run_bytes = most * sizeof(weft_tile_run), block_bytes = most * sizeof(weft_tile_block);
  unsigned char *memory = weft_chip_scratch(chip, WEFT_SCRATCH_PLAN, block_bytes + run_bytes);
  if (!memory) return false;
  *plan = (weft_tile_plan){.blocks = (weft_tile_block *)(void *)memory};
  plan_builder b = {.plan = plan, .runs = (weft_tile_run *)(void *)(memory + block_bytes)};
  uint32_t together = segments_of_block(k, segments, depth);
  for (uint32_t i = 0; i < count; i++) {
    uint64_t length = weft_segment_begin(k, segments, i + 1) - weft_segment_begin(k, segments, i);
    if (i % together == 0) close_block(&b);
    add_segment(&b, length, i, count, depth);
  }
  close_block(&b);
  find_kept(plan);
  return true;
}
