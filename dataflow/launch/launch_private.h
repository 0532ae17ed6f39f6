/* Launches while they run: shared by launch.c and memory.c. */
#ifndef WEFT_DATAFLOW_LAUNCH_LAUNCH_PRIVATE_H
#define WEFT_DATAFLOW_LAUNCH_LAUNCH_PRIVATE_H

#include "queues_private.h"

/* A memory in the types of emitted C; on the process that uses it. */
typedef struct held_memory {
  weft_memory *buffer;
  weft_df_memory memory;
  uint32_t home;
} held_memory;
/* From words to elements, and back. False when memory is exhausted. */
bool held_memory_write(held_memory *held);
void held_memory_read(held_memory *held);

typedef struct held_channel {
  weft_channel *channel;
  const weft_df_launch *sender, *receiver; /* one of those that send; the one that receives */
  uint32_t home;
} held_channel;

typedef struct launch_thread {
  const weft_df_launch *launch;
  uint64_t *values, *results;
  weft_df_memory **memories;
  uint32_t *channels;
  queue_thread queue;
  pthread_t thread;
  bool here, open, started, failed;
} launch_thread;

typedef struct launch_run {
  const weft_df_launch *launches;
  uint64_t count;
  weft_df_chips *chips;
  weft_diag *diag;
  weft_arena *arena;
  held_memory *memories;
  uint64_t memory_count;
  held_channel *channels;
  uint32_t channel_count;
  launch_thread *threads;
  weft_df_queues queues;
} launch_run;

/* The main program, whatever the chips are. */
int launch_main(const weft_df_program *program, weft_df_chips *chips, int argc, char **argv, char **said);

#endif
