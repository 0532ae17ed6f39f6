#include "mpi_window_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

struct weft_window {
  MPI_Win win;
  uint32_t rank, ranks;
  unsigned char **parts; /* by host rank: rings, flags, tensors */
  uint64_t rings, bytes, used;
  uint32_t free_flags[WEFT_FLAGS], free_flag_count;
};

enum { PART_ALIGNMENT = 4096 };

static uint64_t round_up(uint64_t value, uint64_t unit) { return weft_ceil_div(value, unit) * unit; }

/* Whether the host has room for all parts: a shared file that outgrows its file system kills who touches it. */
static bool there_is_room(MPI_Comm host, uint64_t bytes) {
  struct statvfs system;
  uint64_t words[2] = {bytes, UINT64_MAX / 4}, sum = 0, least = 0;
  if (statvfs("/dev/shm", &system) == 0) words[1] = (uint64_t)system.f_bavail * system.f_frsize;
  MPI_Allreduce(&words[0], &sum, 1, MPI_UINT64_T, MPI_SUM, host);
  MPI_Allreduce(&words[1], &least, 1, MPI_UINT64_T, MPI_MIN, host);
  return sum <= least / 4 * 3;
}

static bool find_parts(weft_window *window) {
  window->parts = calloc(window->ranks, sizeof *window->parts);
  int ok = window->parts != NULL;
  for (uint32_t r = 0; ok && r < window->ranks; r++) {
    MPI_Aint size;
    int unit;
    unsigned char *part = NULL;
    ok = MPI_Win_shared_query(window->win, (int)r, &size, &unit, &part) == MPI_SUCCESS;
    /* MPI keeps words of its own before a part. Pages are mapped whole, so all ranks find the same aligned byte. */
    window->parts[r] = part + (64 - (uintptr_t)part % 64) % 64;
  }
  return ok;
}

/* The ranks' answers, so that all use the window or none. */
static bool all_of(MPI_Comm host, bool mine) {
  int word = mine, all = 0;
  MPI_Allreduce(&word, &all, 1, MPI_INT, MPI_MIN, host);
  return all != 0;
}

weft_window *weft_window_new(MPI_Comm host, uint64_t bytes) {
  int rank, ranks;
  MPI_Comm_rank(host, &rank);
  MPI_Comm_size(host, &ranks);
  if (ranks < 2) return NULL;
  weft_window *window = calloc(1, sizeof *window);
  uint64_t rings = (uint64_t)ranks * sizeof(weft_ring);
  uint64_t control = rings + WEFT_FLAGS * sizeof(weft_window_flag),
           part = round_up(control + bytes + 64, PART_ALIGNMENT);
  if (!all_of(host, window && bytes < UINT64_C(1) << 46) || !there_is_room(host, part)) {
    free(window);
    return NULL;
  }
  *window = (weft_window){.win = MPI_WIN_NULL, .rank = (uint32_t)rank, .ranks = (uint32_t)ranks};
  window->rings = rings;
  window->bytes = part - 64; /* after alignment */
  window->used = control;
  for (uint32_t i = 0; i < WEFT_FLAGS; i++) window->free_flags[window->free_flag_count++] = i;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "alloc_shared_noncontig", "true"); /* every rank's part by itself, near its core */
  unsigned char *own = NULL;
  bool made = MPI_Win_allocate_shared((MPI_Aint)part, 1, info, host, &own, &window->win) == MPI_SUCCESS;
  MPI_Info_free(&info);
  if (made) memset(own, 0, part);
  if (all_of(host, made && find_parts(window))) return window;
  if (made) MPI_Win_free(&window->win);
  free(window->parts);
  free(window);
  return NULL;
}

void weft_window_free(weft_window *window) {
  if (!window) return;
  MPI_Win_free(&window->win);
  free(window->parts);
  free(window);
}

void *weft_window_take(weft_window *window, uint64_t bytes) {
  uint64_t size = round_up(weft_max_u64(1, bytes), 64);
  if (bytes > window->bytes || size > window->bytes - window->used) return NULL;
  void *data = window->parts[window->rank] + window->used;
  window->used += size;
  return data;
}

uint64_t weft_window_offset(const weft_window *window, const void *data, uint64_t bytes) {
  uintptr_t begin = (uintptr_t)window->parts[window->rank], at = (uintptr_t)data;
  if (at < begin || at - begin > window->bytes || bytes > window->bytes - (at - begin)) return UINT64_MAX;
  return at - begin;
}

void *weft_window_at(const weft_window *window, uint32_t host_rank, uint64_t offset) {
  return window->parts[host_rank] + offset;
}

weft_ring *weft_window_ring(const weft_window *window, uint32_t from, uint32_t to) {
  return (weft_ring *)(void *)window->parts[to] + from;
}

weft_window_flag *weft_window_flag_at(const weft_window *window, uint32_t host_rank, uint32_t index) {
  return (weft_window_flag *)(void *)(window->parts[host_rank] + window->rings) + index;
}

uint32_t weft_window_flag_take(weft_window *window) {
  if (!window->free_flag_count) return WEFT_FLAGS;
  uint32_t index = window->free_flags[--window->free_flag_count];
  atomic_store_explicit(&weft_window_flag_at(window, window->rank, index)->set, 0, memory_order_relaxed);
  return index;
}

void weft_window_flag_return(weft_window *window, uint32_t index) {
  window->free_flags[window->free_flag_count++] = index;
}
