#include "weft/base.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A path that names nothing usable is the caller's mistake; anything else is the machine's. */
static weft_status status_of_errno(int error) {
  switch (error) {
  case ENOENT:
  case ENOTDIR:
  case EISDIR:
  case EACCES:
  case EPERM:
  case ELOOP:
  case ENAMETOOLONG: return WEFT_INVALID;
  default: return WEFT_UNAVAILABLE;
  }
}

const char *weft_path_hint(int error, bool writes) {
  switch (error) {
  case EISDIR: return writes ? "this is a folder: name a file in it" : "this is a folder: name a file";
  case ENOENT: return writes ? "check the path; the folder it is in must exist" : "check the path";
  case ENOTDIR: return "check the path: a file stands where a folder should";
  case EEXIST: return "something else has this name: choose another";
  case EACCES:
  case EPERM: return "check the permissions of the file and its folder";
  case EROFS: return "choose a folder that can be written";
  case ELOOP: return "check the path: its links lead in a circle";
  case ENAMETOOLONG: return "choose a shorter path";
  case ENOSPC:
  case EDQUOT: return "free some disk space";
  default: return NULL;
  }
}

static weft_status file_error(weft_diag *diag, const char *path, const char *action, int error) {
  return weft_error_at(diag, status_of_errno(error), (weft_place){.file = path},
                       weft_path_hint(error, strcmp(action, "open") != 0 && strcmp(action, "read") != 0),
                       "cannot %s it: %s", action, strerror(error));
}

/* ---- reading ---- */

/* Reads everything from `file` into `text`; 0 or an errno. */
static int read_all(int file, weft_text *text) {
  struct stat status;
  size_t step = 65536;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) step = (size_t)status.st_size + 1;
  for (;;) {
    if (text->capacity - text->length < 2) {
      size_t capacity = weft_max_u64(step, text->capacity * 2);
      char *data = realloc(text->data, capacity);
      if (!data) return ENOMEM;
      text->data = data;
      text->capacity = capacity;
    }
    ssize_t got = read(file, text->data + text->length, weft_min_u64(text->capacity - text->length - 1, SSIZE_MAX));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    text->length += (size_t)got;
  }
  text->data[text->length] = 0;
  return 0;
}

weft_status weft_read_file(const char *path, char **bytes, size_t *length, weft_diag *diag) {
  *bytes = NULL;
  *length = 0;
  bool standard = strcmp(path, "-") == 0;
  int file = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return file_error(diag, path, "open", errno);
  weft_text text = {0};
  int error = read_all(file, &text);
  if (!standard) close(file);
  if (error) {
    weft_text_free(&text);
    return error == ENOMEM ? weft_error_memory(diag) : file_error(diag, path, "read", error);
  }
  *bytes = text.data;
  *length = text.length;
  return WEFT_OK;
}

/* ---- writing ---- */

/* 0 or an errno. */
static int write_all(int file, const char *bytes, size_t length) {
  while (length) {
    ssize_t put = write(file, bytes, weft_min_u64(length, SSIZE_MAX));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    bytes += put;
    length -= (size_t)put;
  }
  return 0;
}

/* Standard output, a device or a pipe: written where it is. */
static weft_status write_through(const char *path, const char *bytes, size_t length, weft_diag *diag) {
  bool standard = strcmp(path, "-") == 0;
  int file = standard ? STDOUT_FILENO : open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return file_error(diag, path, "open", errno);
  int error = write_all(file, bytes, length);
  if (!standard && close(file) && !error) error = errno;
  return error ? file_error(diag, standard ? "standard output" : path, "write", error) : WEFT_OK;
}

static bool holds(const char *path, const char *bytes, size_t length) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  weft_text text = {0};
  bool equal = read_all(file, &text) == 0 && text.length == length && (!length || !memcmp(text.data, bytes, length));
  weft_text_free(&text);
  close(file);
  return equal;
}

/* Makes a new file in `folder`, its name in `name`; a descriptor, or -1 with errno. */
static int open_beside(const char *folder, weft_text *name) {
  for (int attempt = 0; attempt < 1000; attempt++) {
    name->length = 0;
    weft_text_printf(name, "%s/.weft-%ld-%d.part", folder, (long)getpid(), attempt);
    if (name->failed) {
      errno = ENOMEM;
      return -1;
    }
    int file = open(name->data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

/* Syncs the folder, so that the new name survives a power failure; not every file system can, which is no error. */
static void sync_folder(const char *folder) {
  int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  (void)!fsync(file);
  close(file);
}

/* Writes `bytes` to a file in `folder` and renames it to `path`; 0 or an errno. `old` is the file it replaces or NULL.
 */
static int replace(const char *path, const char *folder, const struct stat *old, const char *bytes, size_t length) {
  weft_text name = {0};
  int file = open_beside(folder, &name);
  if (file < 0) {
    int error = errno;
    weft_text_free(&name);
    return error;
  }
  int error = write_all(file, bytes, length);
  if (!error && old && fchmod(file, old->st_mode & 07777)) error = errno;
  if (!error && fsync(file) && errno != EINVAL) error = errno;
  if (close(file) && !error) error = errno;
  if (!error && rename(name.data, path)) error = errno;
  if (error)
    unlink(name.data);
  else
    sync_folder(folder);
  weft_text_free(&name);
  return error;
}

weft_status weft_write_file(const char *path, const char *bytes, size_t length, bool keep_if_equal, weft_diag *diag) {
  struct stat old;
  bool standard = strcmp(path, "-") == 0;
  bool exists = !standard && stat(path, &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) return file_error(diag, path, "write", EISDIR);
  if (standard || (exists && !S_ISREG(old.st_mode))) return write_through(path, bytes, length, diag);
  if (exists && keep_if_equal && (uint64_t)old.st_size == length && holds(path, bytes, length)) return WEFT_OK;
  /* A link stays a link: the file it leads to is replaced. */
  char *target = exists ? realpath(path, NULL) : strdup(path);
  char *copy = target ? strdup(target) : NULL;
  int error = copy ? replace(target, dirname(copy), exists ? &old : NULL, bytes, length) : ENOMEM;
  free(copy);
  free(target);
  return error ? file_error(diag, path, "write", error) : WEFT_OK;
}

/* ---- directories ---- */

weft_status weft_directory_hold(const char *path, int *held, weft_diag *diag) {
  *held = -1;
  if (mkdir(path, 0777) != 0 && errno != EEXIST) return file_error(diag, path, "make", errno);
  *held = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (*held < 0) return file_error(diag, path, "write into", errno);
  /* Where the file system knows no locks, all is as it would be without them. */
  while (flock(*held, LOCK_EX) != 0 && errno == EINTR) {}
  return WEFT_OK;
}

void weft_directory_release(int held) {
  if (held >= 0) close(held);
}
