#include "weft/base.h"

int main(void) { return weft_hash_bytes(0, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c) ? 0 : 1; }
