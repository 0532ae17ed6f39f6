/* Compiled entries run together: memories in the elements' own types, channels as queues, a thread each. */
#include "launch_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const weft_df_entry *weft_df_find(const weft_df_program *program, const char *name) {
  for (uint32_t i = 0; i < program->count; i++)
    if (strcmp(program->entries[i].name, name) == 0) return &program->entries[i];
  return NULL;
}

/* ---- who has what --------------------------------------------------------------------------------------------- */

static uint32_t rank_of(const launch_run *r, const weft_df_launch *launch) {
  return r->chips ? launch->chip % r->chips->ranks : 0;
}

static weft_status refuse(launch_run *r, const weft_df_launch *launch, const char *what, const char *name,
                          const char *why) {
  return weft_error(r->diag, WEFT_INVALID, NULL, "@%s: %s %s%s", launch->entry->name, what, name ? name : "", why);
}

static held_memory *find_memory(launch_run *r, const weft_memory *buffer) {
  for (uint64_t i = 0; i < r->memory_count; i++)
    if (r->memories[i].buffer == buffer) return &r->memories[i];
  return NULL;
}

static weft_status add_memory(launch_run *r, const weft_df_launch *launch, weft_memory *buffer) {
  if (!buffer) return refuse(r, launch, "a memory", NULL, "is not bound");
  held_memory *found = find_memory(r, buffer);
  uint32_t home = rank_of(r, launch);
  if (!found) r->memories[r->memory_count++] = (held_memory){.buffer = buffer, .home = home};
  if (found && found->home != home)
    return refuse(r, launch, "the memory ", buffer->name, " is used on another chip, too");
  return WEFT_OK;
}

static uint32_t find_channel(const launch_run *r, const weft_channel *channel) {
  uint32_t i = 0;
  while (i < r->channel_count && r->channels[i].channel != channel) i++;
  return i;
}

static weft_status add_channel(launch_run *r, const weft_df_launch *launch, weft_channel *channel, uint32_t use) {
  if (!channel) return refuse(r, launch, "a channel", NULL, "is not bound");
  uint32_t index = find_channel(r, channel);
  if (index == r->channel_count) r->channels[r->channel_count++] = (held_channel){.channel = channel};
  held_channel *held = &r->channels[index];
  if (use == WEFT_DF_UNUSED) return WEFT_OK;
  if (use == WEFT_DF_SEND) {
    if (!held->receiver && !held->sender) held->home = rank_of(r, launch);
    held->sender = launch;
    return WEFT_OK;
  }
  if (held->receiver && held->receiver != launch)
    return refuse(r, launch, "the channel ", channel->name, " has another receiver, too");
  held->receiver = launch;
  held->home = rank_of(r, launch);
  return WEFT_OK;
}

static weft_status collect(launch_run *r) {
  uint64_t most = 1;
  for (uint64_t i = 0; i < r->count; i++) most += r->launches[i].entry->inputs + r->launches[i].entry->streams;
  r->memories = WEFT_NEW_ARRAY(r->arena, held_memory, most);
  r->channels = WEFT_NEW_ARRAY(r->arena, held_channel, most);
  r->threads = WEFT_NEW_ARRAY(r->arena, launch_thread, r->count);
  if (!r->memories || !r->channels || !r->threads) return weft_error_memory(r->diag);
  weft_status status = WEFT_OK;
  for (uint64_t i = 0; i < r->count; i++) {
    const weft_df_launch *launch = &r->launches[i];
    for (uint32_t k = 0; status == WEFT_OK && k < launch->entry->inputs; k++) {
      uint32_t use = launch->entry->ports[k].use;
      if (use == WEFT_DF_MEMORY)
        status = add_memory(r, launch, launch->inputs[k].buffer);
      else if (use >= WEFT_DF_UNUSED)
        status = add_channel(r, launch, launch->inputs[k].channel, use);
    }
    for (uint32_t k = 0; status == WEFT_OK && k < launch->entry->streams; k++)
      status = add_channel(r, launch, launch->outputs ? launch->outputs[k] : NULL, WEFT_DF_SEND);
  }
  return status;
}

/* ---- threads -------------------------------------------------------------------------------------------------- */

static weft_status prepare_thread(launch_run *r, uint64_t index) {
  const weft_df_launch *launch = &r->launches[index];
  const weft_df_entry *entry = launch->entry;
  launch_thread *t = &r->threads[index];
  *t = (launch_thread){.launch = launch, .here = rank_of(r, launch) == r->queues.rank};
  t->results = WEFT_NEW_ARRAY(r->arena, uint64_t, entry->results + 1);
  t->values = WEFT_NEW_ARRAY(r->arena, uint64_t, entry->values + 1);
  t->memories = WEFT_NEW_ARRAY(r->arena, weft_df_memory *, entry->memories + 1);
  t->channels = WEFT_NEW_ARRAY(r->arena, uint32_t, entry->channels + 1);
  if (weft_arena_failed(r->arena)) return weft_error_memory(r->diag);
  uint32_t values = 0, memories = 0, channels = 0;
  for (uint32_t k = 0; k < entry->inputs; k++) {
    uint32_t use = entry->ports[k].use;
    if (use == WEFT_DF_VALUE) t->values[values++] = launch->inputs[k].word;
    if (use == WEFT_DF_MEMORY) t->memories[memories++] = &find_memory(r, launch->inputs[k].buffer)->memory;
    if (use >= WEFT_DF_UNUSED) t->channels[channels++] = find_channel(r, launch->inputs[k].channel);
  }
  for (uint32_t k = 0; k < entry->streams; k++) t->channels[channels++] = find_channel(r, launch->outputs[k]);
  if (!t->here) return WEFT_OK;
  t->open = queue_thread_open(&t->queue, &r->queues);
  t->queue.env.machines = launch->machines;
  return t->open ? WEFT_OK : weft_error_memory(r->diag);
}

static void *work(void *context) {
  launch_thread *t = context;
  t->failed = t->launch->entry->run(&t->queue.env, t->values, t->memories, t->channels, t->results) != 0;
  /* The first that fails by itself ends the others. */
  if (t->failed && !t->queue.echo) queues_stop(t->queue.all);
  queue_thread_close(&t->queue);
  return NULL;
}

static weft_status run_threads(launch_run *r) {
  bool alone = r->count == 1 && !r->chips, good = true;
  for (uint64_t i = 0; i < r->count; i++) {
    launch_thread *t = &r->threads[i];
    if (!t->here) continue;
    t->started = !alone && pthread_create(&t->thread, NULL, work, t) == 0;
    if (t->started) continue;
    if (!alone) good = false;
    if (!alone) queues_stop(&r->queues);
    if (alone)
      work(t);
    else
      queue_thread_close(&t->queue);
  }
  if (r->chips && !r->chips->serve(r->chips, &r->queues)) good = false;
  for (uint64_t i = 0; i < r->count; i++)
    if (r->threads[i].started) pthread_join(r->threads[i].thread, NULL);
  if (good && !r->queues.failed) return WEFT_OK;
  return weft_error(r->diag, WEFT_UNAVAILABLE, NULL,
                    r->queues.failed ? "out of memory for tokens" : "a thread could not be started or reached");
}

/* ---- afterwards ----------------------------------------------------------------------------------------------- */

/* The failure that speaks for all: of the first launch that failed by itself, else of the first that waited. */
static uint64_t first_failure(const launch_run *r) {
  uint64_t found = UINT64_MAX;
  for (uint64_t i = 0; i < r->count; i++) {
    const launch_thread *t = &r->threads[i];
    if (t->here && t->failed && !t->queue.echo) return i;
    if (t->here && t->failed && found == UINT64_MAX) found = r->count + i;
  }
  return found;
}

static bool share(const launch_run *r, uint32_t root, void *data, uint64_t bytes) {
  return !r->chips || r->chips->share(r->chips, root, data, bytes);
}

static bool share_outcome(launch_run *r, weft_df_outcome *outcome) {
  uint64_t mine = first_failure(r), least = mine;
  if (r->chips && !r->chips->least(r->chips, &least)) return false;
  *outcome = (weft_df_outcome){.done = least == UINT64_MAX};
  if (outcome->done) return true;
  outcome->launch = least % r->count;
  launch_thread *t = &r->threads[outcome->launch];
  const char *channel = t->here && t->queue.echo && t->queue.waits_for < r->channel_count
                            ? r->channels[t->queue.waits_for].channel->name
                            : NULL;
  if (mine == least && t->here)
    snprintf(outcome->text, sizeof outcome->text, "%s:%u: @%s: %s%s%s",
             t->launch->entry->file ? t->launch->entry->file : "line", t->queue.env.line, t->launch->entry->name,
             t->queue.env.text ? t->queue.env.text : "it failed", channel ? "; it waits for the channel " : "",
             channel ? channel : "");
  return share(r, rank_of(r, t->launch), outcome->text, sizeof outcome->text);
}

static bool share_results(launch_run *r) {
  bool good = true;
  for (uint64_t i = 0; good && i < r->count; i++) {
    launch_thread *t = &r->threads[i];
    uint64_t bytes = t->launch->entry->results * sizeof(uint64_t);
    good = share(r, rank_of(r, t->launch), t->results, bytes);
    if (t->launch->results) memcpy(t->launch->results, t->results, bytes);
  }
  return good;
}

static weft_status share_all(launch_run *r, weft_df_outcome *outcome) {
  bool good = share_outcome(r, outcome) && share_results(r);
  for (uint64_t i = 0; good && i < r->memory_count; i++) {
    held_memory *m = &r->memories[i];
    if (m->home == r->queues.rank) held_memory_read(m);
    good = share(r, m->home, m->buffer->words, m->buffer->count * sizeof(uint64_t));
  }
  for (uint32_t i = 0; good && i < r->channel_count; i++) {
    word_list *list = &r->queues.items[i].list;
    weft_channel *channel = r->channels[i].channel;
    uint64_t count = word_list_length(list);
    good = share(r, r->channels[i].home, &count, sizeof count);
    if (good && r->channels[i].home != r->queues.rank) {
      list->begin = list->end = 0;
      for (uint64_t k = 0; good && k < count; k++) good = word_list_append(list, &k, 1);
    }
    good = good && share(r, r->channels[i].home, word_list_first(list), count * sizeof(uint64_t));
    channel->begin = channel->end = 0;
    for (uint64_t k = 0; good && k < count; k++) good = weft_channel_push(channel, list->words[list->begin + k]);
  }
  return good ? WEFT_OK : weft_error(r->diag, WEFT_UNAVAILABLE, NULL, "results could not be exchanged");
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

static weft_status prepare(launch_run *r) {
  weft_status status = collect(r);
  if (status != WEFT_OK) return status;
  r->queues.items = WEFT_NEW_ARRAY(r->arena, queue, r->channel_count);
  if (!r->queues.items) return weft_error_memory(r->diag);
  r->queues.count = r->channel_count;
  for (uint32_t i = 0; i < r->channel_count; i++) {
    const weft_channel *channel = r->channels[i].channel;
    queue *q = &r->queues.items[i];
    q->home = r->channels[i].home;
    bool here = q->home == r->queues.rank;
    if (here && !word_list_append(&q->list, weft_channel_first(channel), weft_channel_waiting(channel)))
      return weft_error_memory(r->diag);
  }
  for (uint64_t i = 0; status == WEFT_OK && i < r->memory_count; i++)
    if (r->memories[i].home == r->queues.rank && !held_memory_write(&r->memories[i]))
      status = weft_error_memory(r->diag);
  for (uint64_t i = 0; status == WEFT_OK && i < r->count; i++) status = prepare_thread(r, i);
  return status;
}

static void drop(launch_run *r) {
  for (uint64_t i = 0; r->threads && i < r->count; i++)
    if (r->threads[i].open) queue_thread_free(&r->threads[i].queue);
  for (uint32_t i = 0; i < r->queues.count; i++) free(r->queues.items[i].list.words);
  for (uint64_t i = 0; i < r->memory_count; i++) free(r->memories[i].memory.data);
  pthread_mutex_destroy(&r->queues.lock);
  weft_arena_free(r->arena);
}

weft_status weft_df_run(const weft_df_launch *launches, uint64_t count, weft_df_chips *chips, weft_df_outcome *outcome,
                        weft_diag *diag) {
  launch_run r = {.launches = launches, .count = count, .chips = chips, .diag = diag, .arena = weft_arena_new()};
  if (!r.arena) return weft_error_memory(diag);
  pthread_mutex_init(&r.queues.lock, NULL);
  r.queues.rank = chips ? chips->rank : 0;
  r.queues.remote = chips != NULL;
  weft_status status = prepare(&r);
  uint64_t least = (uint64_t)(status == WEFT_OK);
  if (chips && (!chips->least(chips, &least) || !least) && status == WEFT_OK)
    status = weft_error(diag, WEFT_UNAVAILABLE, NULL, "another process could not prepare its threads");
  if (status == WEFT_OK) status = run_threads(&r);
  if (status == WEFT_OK) status = share_all(&r, outcome);
  drop(&r);
  return status;
}
