/* Meshes: reading, numbering, refusals. */
#include "support.h"

#include <string.h>

static void test_reads_axes_in_order(void **state) {
  (void)state;
  weft_mesh mesh;
  assert_int_equal(weft_mesh_parse("x=2,rows_1=3", &mesh, NULL), WEFT_OK);
  assert_int_equal(mesh.axis_count, 2);
  assert_string_equal(mesh.names[0], "x");
  assert_string_equal(mesh.names[1], "rows_1");
  assert_int_equal(mesh.extents[1], 3);
  assert_int_equal(weft_mesh_chips(&mesh), 6);
}

static void test_last_axis_varies_fastest(void **state) {
  (void)state;
  weft_mesh mesh;
  assert_int_equal(weft_mesh_parse("x=2,y=3,z=4", &mesh, NULL), WEFT_OK);
  for (uint32_t chip = 0; chip < 24; chip++) {
    assert_int_equal(weft_mesh_coordinate(&mesh, chip, 0), chip / 12);
    assert_int_equal(weft_mesh_coordinate(&mesh, chip, 1), chip / 4 % 3);
    assert_int_equal(weft_mesh_coordinate(&mesh, chip, 2), chip % 4);
  }
}

static void test_largest_mesh(void **state) {
  (void)state;
  weft_mesh mesh;
  assert_int_equal(weft_mesh_parse("x=65535", &mesh, NULL), WEFT_OK);
  assert_int_equal(weft_mesh_chips(&mesh), 65535);
  assert_int_equal(weft_mesh_parse("a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1", &mesh, NULL), WEFT_OK);
}

static void test_refusals_name_the_axis(void **state) {
  (void)state;
  static const struct {
    const char *text, *word;
  } cases[] = {{"", "''"},
               {"x", "'x'"},
               {"x=", "'x='"},
               {"=2", "'=2'"},
               {"x=0", "'x=0'"},
               {"x=-1", "'x=-1'"},
               {"x=2.5", "'x=2.5'"},
               {"x=65536", "65535"},
               {"x=99999999999999999999999", "65535"},
               {"x=256,y=257", "more than 65535"},
               {"x=2,x=3", "named twice"},
               {"x=2,", "''"},
               {"2x=2", "malformed"},
               {"x y=2", "malformed"},
               {"abcdefghijklmnopqrstuvwxyzabcdef=2", "too long"},
               {"a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1", "at most 8"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    weft_diag *diag = weft_diag_new();
    weft_mesh mesh;
    assert_int_equal(weft_mesh_parse(cases[i].text, &mesh, diag), WEFT_USAGE);
    assert_int_equal(weft_diag_errors(diag), 1);
    assert_messages_have(diag, cases[i].word, NULL);
    weft_diag_free(diag);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reads_axes_in_order),
      cmocka_unit_test(test_last_axis_varies_fastest),
      cmocka_unit_test(test_largest_mesh),
      cmocka_unit_test(test_refusals_name_the_axis),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
