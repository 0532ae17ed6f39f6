/* Arenas: a list of chunks, allocation by advancing in the first of them. Chunks double up to CHUNK_MOST; what is
 * larger than a quarter of that has a chunk of its own. A reset moves the chunks to a spare list, from which new chunks
 * are taken first. Under the address sanitizer, unused bytes are poisoned and allocations are kept apart. */
#include "weft/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHED 1
#endif
#endif

#ifdef WATCHED
#include <sanitizer/asan_interface.h>
#define HIDE(bytes, size) ASAN_POISON_MEMORY_REGION(bytes, size)
#define REVEAL(bytes, size) ASAN_UNPOISON_MEMORY_REGION(bytes, size)
enum { GAP = 16 };
#else
#define HIDE(bytes, size) ((void)(bytes), (void)(size))
#define REVEAL(bytes, size) ((void)(bytes), (void)(size))
enum { GAP = 0 };
#endif

enum { ALIGNMENT = 16, CHUNK_LEAST = 4096, CHUNK_MOST = 1 << 20 };

typedef struct chunk {
  struct chunk *next;
  size_t capacity; /* bytes after the header */
  size_t used;
  size_t dirty; /* bytes that may be other than zero: the most ever used */
} chunk;

#define HEADER ((sizeof(chunk) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)

struct weft_arena {
  chunk *chunks; /* the first one is being filled */
  chunk *spare;
  size_t next_capacity;
  size_t bytes;
  bool failed;
};

static char *chunk_bytes(chunk *c) { return (char *)c + HEADER; }

weft_arena *weft_arena_new(void) {
  weft_arena *arena = calloc(1, sizeof *arena);
  if (arena) arena->next_capacity = CHUNK_LEAST;
  return arena;
}

static void free_chunks(chunk *c) {
  while (c) {
    chunk *next = c->next;
    REVEAL(chunk_bytes(c), c->capacity);
    free(c);
    c = next;
  }
}

void weft_arena_free(weft_arena *arena) {
  if (!arena) return;
  free_chunks(arena->chunks);
  free_chunks(arena->spare);
  free(arena);
}

void weft_arena_reset(weft_arena *arena) {
  while (arena->chunks) {
    chunk *c = arena->chunks;
    arena->chunks = c->next;
    c->used = 0;
    HIDE(chunk_bytes(c), c->capacity);
    c->next = arena->spare;
    arena->spare = c;
  }
}

/* Takes a spare chunk of at least `size` bytes out of the list, or NULL. */
static chunk *take_spare(weft_arena *arena, size_t size) {
  for (chunk **link = &arena->spare; *link; link = &(*link)->next) {
    if ((*link)->capacity >= size) {
      chunk *c = *link;
      *link = c->next;
      return c;
    }
  }
  return NULL;
}

static chunk *new_chunk(weft_arena *arena, size_t size) {
  size_t capacity = arena->next_capacity;
  if (size > CHUNK_MOST / 4)
    capacity = size;
  else
    while (capacity < size) capacity *= 2;
  chunk *c = calloc(1, HEADER + capacity);
  weft_memory_will_fill(c, HEADER + capacity);
  if (!c) return NULL;
  c->capacity = capacity;
  arena->bytes += HEADER + capacity;
  if (arena->next_capacity < CHUNK_MOST) arena->next_capacity *= 2;
  HIDE(chunk_bytes(c), capacity);
  return c;
}

/* A chunk with room for `size` bytes. The chunk with most room left afterwards stays first. */
static chunk *chunk_with_room(weft_arena *arena, size_t size) {
  chunk *first = arena->chunks;
  if (first && first->capacity - first->used >= size) return first;
  chunk *c = take_spare(arena, size);
  if (!c) c = new_chunk(arena, size);
  if (!c) return NULL;
  if (first && first->capacity - first->used > c->capacity - size) {
    c->next = first->next;
    first->next = c;
  } else {
    c->next = first;
    arena->chunks = c;
  }
  return c;
}

/* Takes the next `taken` bytes of a chunk, of which the caller sees the first `size`, zeroed. */
static char *take(chunk *c, size_t size, size_t taken) {
  char *bytes = chunk_bytes(c) + c->used;
  REVEAL(bytes, size);
  if (c->used < c->dirty) {
    size_t stale = c->dirty - c->used;
    memset(bytes, 0, stale < size ? stale : size);
  }
  c->used += taken;
  if (c->dirty < c->used) c->dirty = c->used;
  return bytes;
}

void *weft_arena_alloc(weft_arena *arena, size_t size) {
  if (size > PTRDIFF_MAX - HEADER - ALIGNMENT - GAP) {
    arena->failed = true;
    return NULL;
  }
  size_t taken = (weft_max_u64(size, 1) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + GAP;
  chunk *c = chunk_with_room(arena, taken);
  if (!c) {
    arena->failed = true;
    return NULL;
  }
  return take(c, size, taken);
}

void *weft_arena_array(weft_arena *arena, uint64_t count, size_t size) {
  uint64_t bytes;
  if (weft_mul_overflow(count, size, &bytes)) {
    arena->failed = true;
    return NULL;
  }
  return weft_arena_alloc(arena, bytes);
}

char *weft_arena_string(weft_arena *arena, const char *text, size_t length) {
  if (length == SIZE_MAX) {
    arena->failed = true;
    return NULL;
  }
  char *copy = weft_arena_alloc(arena, length + 1);
  if (copy && length) memcpy(copy, text, length);
  return copy;
}

static WEFT_PRINTF(2, 0) char *arena_vprintf(weft_arena *arena, const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, arguments);
  char *text = length < 0 ? NULL : weft_arena_alloc(arena, (size_t)length + 1);
  if (text) vsnprintf(text, (size_t)length + 1, format, again);
  va_end(again);
  return text;
}

char *weft_arena_printf(weft_arena *arena, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *text = arena_vprintf(arena, format, arguments);
  va_end(arguments);
  return text;
}

bool weft_arena_failed(const weft_arena *arena) { return arena->failed; }

size_t weft_arena_bytes(const weft_arena *arena) { return arena->bytes; }

/* Whether the array `old` of `old_size` bytes, the last thing allocated, could be made `new_size` bytes where it is. */
static bool grown_in_place(weft_arena *arena, const char *old, size_t old_size, size_t new_size) {
  chunk *c = arena->chunks;
  if (GAP || !old || !c || old_size % ALIGNMENT || new_size < old_size) return false;
  if (old_size > c->used || old != chunk_bytes(c) + c->used - old_size) return false;
  size_t more = new_size - old_size;
  if (more > SIZE_MAX - ALIGNMENT || more > c->capacity - c->used) return false;
  size_t taken = (more + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (taken > c->capacity - c->used) return false;
  take(c, more, taken);
  return true;
}

bool weft_arena_grow(weft_arena *arena, void *items, uint64_t count, uint64_t *capacity, size_t element_size) {
  if (count < *capacity) return true;
  void *old;
  memcpy(&old, items, sizeof old); /* `items` is the address of a pointer of any type */
  uint64_t wanted = *capacity ? *capacity : 4;
  if ((*capacity && weft_mul_overflow(wanted, 2, &wanted))) {
    arena->failed = true;
    return false;
  }
  uint64_t bytes;
  if (weft_mul_overflow(wanted, element_size, &bytes) || !grown_in_place(arena, old, *capacity * element_size, bytes)) {
    void *grown = weft_arena_array(arena, wanted, element_size);
    if (!grown) return false;
    if (count) memcpy(grown, old, count * element_size);
    memcpy(items, &grown, sizeof grown);
  }
  *capacity = wanted;
  return true;
}
