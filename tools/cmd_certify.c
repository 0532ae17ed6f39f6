/* weft certify: proves a schedule, or the programs of all chips together. */
#include "options.h"
#include "pipeline.h"
#include "progress.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void print_certificate(const char *path, const weft_certificate *c, bool json) {
  if (json) {
    printf("{\"programs\": %llu, \"ops\": %llu, \"steps\": %llu, \"sections\": %llu, \"buffers\": %llu, "
           "\"semaphores\": %llu, \"tiles_written\": %llu, \"partial_proved\": %s}\n",
           (unsigned long long)c->programs, (unsigned long long)c->ops, (unsigned long long)c->steps,
           (unsigned long long)c->sections, (unsigned long long)c->buffers, (unsigned long long)c->semaphores,
           (unsigned long long)c->tiles_written, c->partial_proved ? "true" : "false");
    return;
  }
  printf("%s: certified\n", path);
  printf("  %llu engine programs of %llu ops, %llu steps in %llu sections: every interleaving ends\n",
         (unsigned long long)c->programs, (unsigned long long)c->ops, (unsigned long long)c->steps,
         (unsigned long long)c->sections);
  printf("  %llu buffers never over- or underflow, %llu semaphores are waited for after their reset\n",
         (unsigned long long)c->buffers, (unsigned long long)c->semaphores);
  printf("  %llu tiles are written once each, none is read before\n", (unsigned long long)c->tiles_written);
  printf(c->partial_proved ? "  every partial sum is reduced\n" : "  not proved: no partial information\n");
}

/* ---- which files ------------------------------------------------------------------------------------------------- */

typedef struct path_list {
  char **items;
  uint64_t count, capacity;
} path_list;

static bool add_path(path_list *list, const char *directory, const char *name) {
  if (list->count == list->capacity) {
    uint64_t capacity = list->capacity ? list->capacity * 2 : 16;
    char **items = realloc(list->items, capacity * sizeof *items);
    if (!items) return false;
    list->items = items;
    list->capacity = capacity;
  }
  size_t length = strlen(name) + (directory ? strlen(directory) + 1 : 0) + 1;
  char *path = malloc(length);
  if (!path) return false;
  snprintf(path, length, "%s%s%s", directory ? directory : "", directory ? "/" : "", name);
  list->items[list->count++] = path;
  return true;
}

static void free_paths(path_list *list) {
  for (uint64_t i = 0; i < list->count; i++) free(list->items[i]);
  free(list->items);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/** The dumps of a directory in the order of their names. */
static weft_status add_directory(path_list *list, const char *path, weft_diag *diag) {
  DIR *directory = opendir(path);
  if (!directory) return weft_error(diag, WEFT_UNAVAILABLE, NULL, "cannot read directory '%s'", path);
  uint64_t before = list->count;
  bool good = true;
  for (const struct dirent *entry = readdir(directory); entry && good; entry = readdir(directory)) {
    size_t length = strlen(entry->d_name);
    if (length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0) good = add_path(list, path, entry->d_name);
  }
  closedir(directory);
  if (!good) return weft_error_memory(diag);
  if (list->count == before)
    return weft_error(diag, WEFT_INVALID, "`weft shard --per-chip DIR` writes one dump a chip",
                      "directory '%s' has no dumps", path);
  qsort(list->items + before, list->count - before, sizeof *list->items, by_name);
  return WEFT_OK;
}

static weft_status find_paths(path_list *list, const weft_arguments *arguments, weft_diag *diag) {
  for (int i = 0; i < arguments->count; i++) {
    struct stat info;
    bool directory = stat(arguments->items[i], &info) == 0 && S_ISDIR(info.st_mode);
    weft_status status = directory                                   ? add_directory(list, arguments->items[i], diag)
                         : add_path(list, NULL, arguments->items[i]) ? WEFT_OK
                                                                     : weft_error_memory(diag);
    if (status) return status;
  }
  return WEFT_OK;
}

/* ---- proving ----------------------------------------------------------------------------------------------------- */

static weft_status certify(const char *path, weft_program *program, const char *target_name, bool json,
                           weft_diag *diag) {
  weft_certificate certificate;
  weft_status status = WEFT_OK;
  weft_tool_step("planning");
  if (weft_program_phase(program) < WEFT_PHASE_SCHEDULED) {
    weft_target target;
    weft_options options = {.stop_after = "synthesize_handshakes"};
    status = weft_target_load(target_name, &target, diag);
    if (!status) status = weft_plan(program, &target, &options, diag);
  }
  weft_tool_step("proving");
  if (!status) status = weft_certify(program, &certificate, diag);
  weft_tool_step_end();
  if (!status) print_certificate(path, &certificate, json);
  return status;
}

/** One chip's program says nothing about the other side of its links. */
static void print_alone(const weft_program *program) {
  if (program->chip != WEFT_NONE && program->link_count)
    printf("  not proved: that the other chips send and receive what chip %u expects; give the programs of all %u\n",
           program->chip, program->chips);
}

/** Where each file's program goes: by its chip, each chip once, none missing. */
static weft_status place_chip(weft_program **by_chip, uint64_t count, const char *path, weft_program *program,
                              weft_diag *diag) {
  const char *hint = "give the programs of one split, each once: `weft shard --per-chip DIR` writes them";
  const weft_place place = {.file = path};
  if (program->chip == WEFT_NONE)
    return weft_error_at(diag, WEFT_INVALID, place, hint, "program '%s' does not say which chip it is of",
                         program->name);
  if (program->chips != count)
    return weft_error_at(diag, WEFT_INVALID, place, hint,
                         "program '%s' is of a machine of %u chips, and %llu are given", program->name, program->chips,
                         (unsigned long long)count);
  if (program->chip >= count || by_chip[program->chip])
    return weft_error_at(diag, WEFT_INVALID, place, hint, "there are two programs of chip %u", program->chip);
  by_chip[program->chip] = program;
  return WEFT_OK;
}

/** Every program by itself, and that what each sends and receives fits the others and cannot deadlock. */
static weft_status certify_all(const path_list *paths, const char *target, bool json, weft_diag *diag) {
  uint64_t count = paths->count;
  weft_program **read = calloc(count, sizeof(weft_program *)), **by_chip = calloc(count, sizeof(weft_program *));
  weft_status status = read && by_chip ? WEFT_OK : weft_error_memory(diag);
  for (uint64_t i = 0; i < count && !status; i++) status = weft_tool_read(paths->items[i], &read[i], diag);
  for (uint64_t i = 0; i < count && count > 1 && !status; i++)
    status = place_chip(by_chip, count, paths->items[i], read[i], diag);
  if (!status && count > 1) {
    weft_diag_about(diag, NULL);
    status = weft_split_check((const weft_program *const *)by_chip, (uint32_t)count, diag);
  }
  for (uint64_t i = 0; i < count && !status; i++) {
    weft_diag_about(diag, paths->items[i]);
    if (read[i]->stage_count || count == 1) status = certify(paths->items[i], read[i], target, json, diag);
  }
  if (!status && count == 1 && !json) print_alone(read[0]);
  if (!status && count > 1 && !json)
    printf("%llu chips together: every send has its receive, and the links cannot deadlock\n",
           (unsigned long long)count);
  for (uint64_t i = 0; read && i < count; i++) weft_program_free(read[i]);
  free(read);
  free(by_chip);
  return status;
}

int weft_cmd_certify(int argc, char **argv) {
  bool json = false;
  const char *target = "cpu";
  const weft_option options[] = {
      {.name = "json", .kind = WEFT_OPTION_FLAG, .target = &json, .help = "print the figures as a JSON object"},
      {.name = "target",
       .kind = WEFT_OPTION_TEXT,
       .target = &target,
       .argument = "NAME",
       .help = "what to plan for when the program has no schedule yet (cpu)"},
      {0}};
  const weft_usage usage = {
      .synopsis = "certify FILE | certify CHIP... | certify DIR",
      .about = "Proves that a scheduled program ends whatever the order of its engines, that no buffer over- or "
               "underflows,\n"
               "that every tile is written once and read after, and that every partial sum is reduced.\n"
               "A refusal names the engine, the op and the stage; a deadlock shows who waits for whom.\n"
               "The programs of all chips of a machine, or a directory of them, are proved one by one and together:\n"
               "that every send has its receive, and that no circle of links waits for itself.",
      .example = "weft new mlp --layers 784,256,10 --batch 32 -o digits.json\n"
                 "weft plan digits.json -o planned.json && weft certify planned.json\n"
                 "weft shard digits.json --chips 4 --per-chip chips -o four.json && weft certify chips",
      .options = options,
      .least = 1,
      .most = -1};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  weft_diag *diag = weft_diag_new();
  path_list paths = {0};
  weft_status status = diag ? find_paths(&paths, &arguments, diag) : WEFT_UNAVAILABLE;
  if (!status) status = certify_all(&paths, target, json, diag);
  free_paths(&paths);
  return weft_tool_finish(status, diag, &arguments);
}
