/* Random damage to files is a message or another file, never a crash, a hang or boundless memory. The files hold what
 * weft writes, and unfiltered chunks; HDF5 1.10 itself does not survive every damage of compressed chunks and of texts
 * of varying length, which are left out here.
 *
 *   test_tensor_damage [SEED [CASES]]    one case: test_tensor_damage SEED 1 */
#define TEST_FOLDER "damage"
#include "tensor_fixture.h"

#include <inttypes.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t first_seed = 1, cases = 300;

static char *whole, *damaged;
static size_t length;

static void damage(uint64_t seed) {
  uint64_t random = seed * 1000003;
  memcpy(damaged, whole, length);
  size_t within = weft_random_next(&random) % 2 && length > 4096 ? 4096 : length;
  for (uint64_t hits = 1 + weft_random_next(&random) % 8; hits; hits--) {
    size_t at = weft_random_next(&random) % within;
    uint64_t how = weft_random_next(&random);
    if (how % 3 == 0) damaged[at] ^= (char)(1 << (how >> 8) % 8);
    if (how % 3 == 1) damaged[at] = (char)(how >> 8);
    for (size_t i = at; how % 3 == 2 && i < at + 4 && i < length; i++) damaged[i] = (how >> 8) % 2 ? -1 : 0;
  }
  FILE *file = fopen(FOLDER "damaged.h5", "wb");
  assert_non_null(file);
  size_t kept = weft_random_next(&random) % 8 ? length : weft_random_next(&random) % length;
  assert_int_equal(fwrite(damaged, 1, kept, file), kept);
  fclose(file);
}

/* In a process of its own, with 60 seconds and 4 GiB. */
static int read_damaged(void) {
  alarm(60);
#if !defined(__SANITIZE_ADDRESS__)
  setrlimit(RLIMIT_AS, &(struct rlimit){UINT64_C(4) << 30, UINT64_C(4) << 30});
#endif
  weft_array_set set = {0};
  weft_diag *diag = weft_diag_new();
  weft_status status = weft_array_set_read(FOLDER "damaged.h5", &set, diag);
  bool told = status == WEFT_OK || weft_diag_errors(diag) > 0;
  weft_array_set_free(&set);
  weft_diag_free(diag);
  return told ? 0 : 1;
}

static void damage_is_survived(void **state) {
  (void)state;
  assert_int_equal(weft_read_file(FOLDER "plain.h5", &whole, &length, NULL), WEFT_OK);
  damaged = malloc(length);
  for (uint64_t seed = first_seed; seed < first_seed + cases; seed++) {
    damage(seed);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) exit(read_damaged());
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      fail_msg("wait status %d; to repeat: test_tensor_damage %" PRIu64 " 1", status, seed);
  }
  free(damaged);
  free(whole);
}

int main(int argc, char **argv) {
  if (argc > 1) first_seed = strtoull(argv[1], NULL, 10);
  if (argc > 2) cases = strtoull(argv[2], NULL, 10);
  const struct CMUnitTest tests[] = {cmocka_unit_test(damage_is_survived)};
  return cmocka_run_group_tests(tests, make_files, NULL);
}
