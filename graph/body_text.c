/* Bodies written as text in postfix order: "$0 $1 sub exp". */
#include "graph_private.h"

#include <stdlib.h>
#include <string.h>

/** Nodes so far, and the roots of the trees that no node has taken yet. */
typedef struct writing {
  weft_body_node *nodes;
  uint64_t count;
  uint32_t stack[WEFT_BODY_MAX_DEPTH + 2];
  uint32_t height;
} writing;

static bool push(writing *w, weft_body_node node, uint32_t children) {
  if (w->height < children || w->height - children >= sizeof w->stack / sizeof *w->stack) return false;
  w->height -= children;
  for (uint32_t c = 0; c < children; c++) node.child[c] = w->stack[w->height + c];
  w->nodes[w->count] = node;
  w->stack[w->height++] = (uint32_t)w->count++;
  return true;
}

/** A whole number up to the token's end. */
static bool read_whole(const char *text, const char *end, uint64_t *value) {
  char *stop;
  if (text == end || *text < '0' || *text > '9') return false;
  *value = strtoull(text, &stop, 10);
  return stop == end;
}

/** "lt:8", "ge:8", or with the bound in an operand, "lt:$2". */
static bool push_select(writing *w, uint32_t var, const char *text, const char *end) {
  weft_body_node node = {.kind = WEFT_BODY_SELECT, .pred.var = var};
  if (end - text < 4 || text[2] != ':') return false;
  node.pred.ge = memcmp(text, "ge", 2) == 0;
  if (!node.pred.ge && memcmp(text, "lt", 2) != 0) return false;
  node.pred.operand_bound = text[3] == '$';
  return read_whole(text + 3 + node.pred.operand_bound, end, &node.pred.bound) && push(w, node, 2);
}

/** "rsqrt:EPS_NANO:OVER". */
static bool push_rsqrt(writing *w, const char *text, const char *end) {
  weft_body_node node = {.kind = WEFT_BODY_UNARY, .sfpu = WEFT_SFPU_RSQRT};
  const char *colon = memchr(text, ':', (size_t)(end - text));
  return colon && read_whole(text, colon, &node.eps_nano) && read_whole(colon + 1, end, &node.over) && push(w, node, 1);
}

static const struct {
  const char *name;
  weft_body_kind kind;
  weft_sfpu_kind sfpu;
  uint32_t children;
} words[] = {
    {"add", WEFT_BODY_ADD, 0, 2},
    {"sub", WEFT_BODY_SUB, 0, 2},
    {"mul", WEFT_BODY_MUL, 0, 2},
    {"div", WEFT_BODY_DIV, 0, 2},
    {"min", WEFT_BODY_MIN, 0, 2},
    {"max", WEFT_BODY_MAX, 0, 2},
    {"floordiv", WEFT_BODY_FLOOR_DIV, 0, 2},
    {"if", WEFT_BODY_VALUE_SELECT, 0, 3},
    {"exp", WEFT_BODY_UNARY, WEFT_SFPU_EXP, 1},
    {"recip", WEFT_BODY_UNARY, WEFT_SFPU_RECIP, 1},
    {"silu", WEFT_BODY_UNARY, WEFT_SFPU_SILU, 1},
    {"relu", WEFT_BODY_UNARY, WEFT_SFPU_RELU, 1},
    {"ln", WEFT_BODY_UNARY, WEFT_SFPU_LN, 1},
    {"tanh", WEFT_BODY_UNARY, WEFT_SFPU_TANH, 1},
    {"erf", WEFT_BODY_UNARY, WEFT_SFPU_ERF, 1},
};

static bool push_word(writing *w, const char *text, const char *end) {
  size_t length = (size_t)(end - text);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strlen(words[i].name) == length && memcmp(words[i].name, text, length) == 0)
      return push(w, (weft_body_node){.kind = words[i].kind, .sfpu = words[i].sfpu}, words[i].children);
  weft_body_node node = {.kind = WEFT_BODY_SHR};
  if (length > 4 && memcmp(text, "shr:", 4) == 0) return read_whole(text + 4, end, &node.value) && push(w, node, 1);
  if (length > 6 && memcmp(text, "rsqrt:", 6) == 0) return push_rsqrt(w, text + 6, end);
  if (length > 3 && memcmp(text, "col", 3) == 0) return push_select(w, WEFT_VAR_GEN_COL, text + 3, end);
  if (length > 3 && memcmp(text, "row", 3) == 0) return push_select(w, WEFT_VAR_GEN_ROW, text + 3, end);
  char *stop;
  double value = strtod(text, &stop);
  if (stop != end) return false;
  node = (weft_body_node){.kind = WEFT_BODY_CONST};
  memcpy(&node.value, &value, sizeof value);
  return push(w, node, 0);
}

static bool push_token(writing *w, const char *text, const char *end) {
  weft_body_node operand = {.kind = WEFT_BODY_OPERAND};
  if (*text == '$') return read_whole(text + 1, end, &operand.value) && push(w, operand, 0);
  return push_word(w, text, end);
}

weft_body weft_body_write(weft_arena *arena, const char *text) {
  writing w = {.nodes = WEFT_NEW_ARRAY(arena, weft_body_node, strlen(text) / 2 + 1)};
  while (w.nodes) {
    text += strspn(text, " ");
    if (!*text) break;
    const char *end = text + strcspn(text, " ");
    if (!push_token(&w, text, end)) return (weft_body){0};
    text = end;
  }
  return (weft_body){w.nodes, w.height == 1 ? w.count : 0};
}
