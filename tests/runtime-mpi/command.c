#include "command.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void read_back(FILE *file, command_result *result) {
  rewind(file);
  size_t length = fread(result->output, 1, sizeof result->output - 1, file);
  result->output[length] = 0;
}

void command_run(const char *command, double limit, command_result *result) {
  *result = (command_result){.status = -1};
  FILE *output = tmpfile();
  if (!output) return;
  double begun = seconds();
  pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    dup2(fileno(output), STDOUT_FILENO);
    dup2(fileno(output), STDERR_FILENO);
    int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
  }
  int status = 0;
  while (child > 0 && waitpid(child, &status, WNOHANG) == 0) {
    if (seconds() - begun > limit) {
      result->late = true;
      kill(-child, SIGKILL);
    }
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  }
  result->seconds = seconds() - begun;
  result->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  read_back(output, result);
  fclose(output);
}

const char *command_mpirun(int ranks) {
  static char text[256];
  snprintf(text, sizeof text, "%s -n %d --oversubscribe --bind-to none%s", WEFT_MPIEXEC, ranks,
           geteuid() == 0 ? " --allow-run-as-root" : "");
  return text;
}

int command_count(const char *text, const char *words) {
  int count = 0;
  for (const char *at = strstr(text, words); at; at = strstr(at + 1, words)) count++;
  return count;
}
