/* Shards of an HDF5 dataset in the page cache: rows beside plain read() and memcpy, columns beside rows of as many
 * bytes. */
#include "bench.h"

#include "weft/tensor_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct shard {
  weft_tensor_file *file;
  uint64_t row0, rows, col0, cols;
  void *out;
} shard;

typedef struct plain {
  int descriptor;
  const void *from;
  void *to;
  uint64_t bytes;
} plain;

static void read_shard(void *context) {
  const shard *s = context;
  if (weft_tensor_file_read(s->file, "w", WEFT_FP32, s->row0, s->rows, s->col0, s->cols, s->out, s->cols, NULL) ==
      WEFT_OK)
    return;
  fputs("shards: a shard could not be read\n", stderr);
  exit(3);
}

static void read_plainly(void *context) {
  const plain *p = context;
  for (uint64_t done = 0; done < p->bytes;) {
    ssize_t count = pread(p->descriptor, (char *)p->to + done, p->bytes - done, (off_t)done);
    if (count <= 0) exit(3);
    done += (uint64_t)count;
  }
}

static void copy(void *context) {
  const plain *p = context;
  memcpy(p->to, p->from, p->bytes);
}

typedef struct writing {
  char path[600];
  const void *data;
  uint64_t rows, cols;
} writing;

static void write_tensor(void *context) {
  const writing *w = context;
  weft_tensor_writer *writer = NULL;
  const uint64_t extents[] = {w->rows, w->cols};
  weft_status status = weft_tensor_writer_create(w->path, &writer, NULL);
  if (status == WEFT_OK) status = weft_tensor_writer_declare(writer, "w", WEFT_FP32, 2, extents, "Param", NULL);
  if (status == WEFT_OK) status = weft_tensor_writer_write(writer, "w", 0, w->rows, 0, w->cols, w->data, w->cols, NULL);
  if (status == WEFT_OK) status = weft_tensor_writer_commit(writer, NULL);
  if (status == WEFT_OK) return;
  fputs("shards: the file could not be written\n", stderr);
  exit(3);
}

/* As safe as the other: beside, synced, renamed. */
static void write_plainly(void *context) {
  const writing *w = context;
  char beside[620];
  snprintf(beside, sizeof beside, "%s.new", w->path);
  int descriptor = open(beside, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  uint64_t bytes = w->rows * w->cols * sizeof(float);
  for (uint64_t done = 0; done < bytes;) {
    ssize_t count = write(descriptor, (const char *)w->data + done, bytes - done);
    if (count <= 0) exit(3);
    done += (uint64_t)count;
  }
  if (fsync(descriptor) != 0 || close(descriptor) != 0 || rename(beside, w->path) != 0) exit(3);
}

static void compare(bench *b, const char *figure, const char *what, uint64_t bytes, const bench_work *weft,
                    const char *name, const bench_work *peer) {
  bench_pair pair;
  bench_measure(b, weft, peer, &pair);
  bench_report(
      b, &(bench_row){.figure = figure, .what = what, .peer = name, .unit = "GB/s", .amount = 1e-9 * (double)bytes},
      &pair);
}

static void run_reads(bench *b, weft_tensor_file *file, const char *path, uint64_t rows, uint64_t cols) {
  uint64_t bytes = rows / 8 * cols * sizeof(float);
  void *out = bench_memory(bytes), *other = bench_memory(bytes);
  shard row8 = {file, rows / 8, rows / 8, 0, cols, out}, row64 = {file, rows / 64, rows / 64, 0, cols, out};
  shard col2 = {file, 0, rows / 4, cols / 2, cols / 2, out}, row2 = {file, rows / 8, rows / 8, 0, cols, out};
  shard col8 = {file, 0, rows, cols / 8, cols / 8, out}, col64 = {file, 0, rows, cols / 64, cols / 64, out};
  plain p = {open(path, O_RDONLY), out, other, bytes};
  if (p.descriptor < 0) exit(3);
  const bench_work rows8 = {read_shard, &row8, 1};
  compare(b, NULL, "row shard 1/8", bytes, &rows8, "read()", &(bench_work){read_plainly, &p, 1});
  compare(b, NULL, "row shard 1/8", bytes, &rows8, "memcpy", &(bench_work){copy, &p, 1});
  compare(b, NULL, "column shard 1/2 of a quarter of rows", bytes, &(bench_work){read_shard, &col2, 1}, "row shard",
          &(bench_work){read_shard, &row2, 1});
  compare(b, "column_8", "column shard 1/8", bytes, &(bench_work){read_shard, &col8, 1}, "row shard", &rows8);
  compare(b, "column_64", "column shard 1/64", bytes / 8, &(bench_work){read_shard, &col64, 1}, "row shard",
          &(bench_work){read_shard, &row64, 1});
  close(p.descriptor);
  free(out);
  free(other);
}

int main(int argc, char **argv) {
  bench_environment(argv);
  bench b;
  if (!bench_begin(&b, "shards", 0, argc, argv)) return 2;
  bench_heading(&b, "shards of a contiguous fp32 dataset of HDF5 in the page cache", "plain read(), write(), memcpy",
                NULL);
  uint64_t rows = b.quick ? 1024 : 16384, cols = b.quick ? 1024 : 4096;
  writing w = {.rows = rows, .cols = cols};
  const char *folder = bench_folder();
  if (!folder) return 3;
  snprintf(w.path, sizeof w.path, "%s/shards.h5", folder);
  float *data = bench_memory(rows * cols * sizeof(float));
  bench_fill(data, rows * cols, 1);
  w.data = data;
  write_tensor(&w);
  weft_tensor_file *file = NULL;
  if (weft_tensor_file_open(w.path, &file, NULL) != WEFT_OK) return 3;
  run_reads(&b, file, w.path, rows, cols);
  weft_tensor_file_close(file);
  writing other = w;
  w.rows = other.rows = rows / 4;
  snprintf(other.path, sizeof other.path, "%s/plain.bin", folder);
  b.samples = b.quick ? 1 : 5; /* what a disk does is no matter of microseconds */
  compare(&b, NULL, "file written, synced, renamed", w.rows * w.cols * sizeof(float),
          &(bench_work){write_tensor, &w, 1}, "write()", &(bench_work){write_plainly, &other, 1});
  free(data);
  return bench_end(&b);
}
