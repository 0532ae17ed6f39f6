/* Every fault weft_program_validate reports, one row each.
 *
 * Columns: identifier; name in JSON; its data, in the order in which they are given; message; remedy; numbered section
 * of docs/validation.md. Data after a | are for the message only. In messages and remedies {key} stands for a datum.
 * The first table is the spatial-ir seed's: names, data and order of checks are its own, so that a verdict can be
 * compared with another compiler's. The second is weft's: what the seed leaves undefined or does not look at. */
#ifndef WEFT_IR_VIOLATIONS_H
#define WEFT_IR_VIOLATIONS_H

#define WEFT_VIOLATIONS(ROW)                                                                                           \
  ROW(ID_NOT_DENSE, "IdNotDense", "what index", "{what} {index} has the id of another",                                \
      "give the {what} at index {index} the id {index}", "1")                                                          \
  ROW(SECTION_SPAN_MALFORMED, "SectionSpanMalformed", "section what", "{section} is malformed: {what}",                \
      "the sections' spans follow one another without a gap; each rendezvous has its own gather and release", "2")     \
  ROW(SECTION_BUFFER_ESCAPE, "SectionBufferEscape", "stage buffer stage_section buffer_section",                       \
      "{stage} uses {buffer}, which is not its section's",                                                             \
      "hand the value over in a tensor: sections share no local memory", "2")                                          \
  ROW(DANGLING_TENSOR, "DanglingTensor", "stage tensor", "{stage} names {tensor}, which does not exist",               \
      "name one of the program's tensors", "3")                                                                        \
  ROW(DANGLING_BUFFER, "DanglingBuffer", "stage buffer | by", "{by} names {buffer}, which does not exist",             \
      "name one of the program's buffers", "3")                                                                        \
  ROW(DANGLING_STAGE, "DanglingStage", "edge stage", "{edge} names {stage}, which does not exist",                     \
      "name one of the program's stages", "3")                                                                         \
  ROW(DANGLING_GROUP, "DanglingGroup", "stage group", "{stage} names {group}, which does not exist",                   \
      "name one of the placement's groups", "3")                                                                       \
  ROW(DANGLING_SEMAPHORE, "DanglingSemaphore", "sem | edge", "{edge} names {sem}, which does not exist",               \
      "name one of the program's semaphores", "3")                                                                     \
  ROW(DANGLING_ITEM, "DanglingItem", "stage item", "{stage} names {item}, which does not exist",                       \
      "name one of the work items", "3")                                                                               \
  ROW(EDGE_BUFFER_NOT_IN_STAGE_PORTS, "EdgeBufferNotInStagePorts", "edge stage buffer",                                \
      "{edge} goes over {buffer}, which is not a port of {stage}",                                                     \
      "an edge's first stage has the buffer among its outs, the readers of a local edge among their ins", "4")         \
  ROW(FIFO_PRODUCER_COUNT, "FifoProducerCount", "buffer count",                                                        \
      "{buffer} is filled by {count} local edges, not by one", "give a FIFO exactly one local edge that fills it",     \
      "4")                                                                                                             \
  ROW(FIFO_CONSUMER_COUNT, "FifoConsumerCount", "buffer count", "{buffer} is read over {count} edges, not over one",   \
      "give a FIFO exactly one reader", "4")                                                                           \
  ROW(CARRY_NOT_A_RING, "CarryNotARing", "buffer", "the carry {buffer} is not an Interm of two pages",                 \
      "make it an Interm with depth_pages 2: the value before and after a block", "5")                                 \
  ROW(CARRY_UPDATED_TWICE, "CarryUpdatedTwice", "buffer",                                                              \
      "the carry {buffer} is updated or initialized by more than one stage", "keep one update and one init", "5")      \
  ROW(CARRY_WITHOUT_INIT, "CarryWithoutInit", "buffer", "the carry {buffer} has no init",                              \
      "add a stage that writes it before the K blocks", "5")                                                           \
  ROW(CARRY_INIT_MOVES_WITH_THE_BLOCKS, "CarryInitMovesWithTheBlocks", "buffer",                                       \
      "the init of the carry {buffer} reads a value that moves with the K blocks",                                     \
      "initialize a carry from what is fixed for the item", "5")                                                       \
  ROW(TILE_GRID_MISMATCH, "TileGridMismatch", "tensor | rows cols",                                                    \
      "{tensor} declares a tile grid other than its extents give, {rows} x {cols}",                                    \
      "the grid is the extents over the tile, rounded up", "6a")                                                       \
  ROW(TENSOR_ROLE_DEFERRED, "TensorRoleDeferred", "tensor role until",                                                 \
      "{tensor} has the role {role} but does not live it",                                                             \
      "an Activation needs sections, a store and a load; a State needs a store", "6a")                                 \
  ROW(TENSOR_SPACE_DEFERRED, "TensorSpaceDeferred", "tensor space until",                                              \
      "{tensor} is in {space} without being carried", "keep only Activation and State tensors in Sram", "6a")          \
  ROW(LOAD_READS_OUTPUT, "LoadReadsOutput", "stage tensor", "{stage} loads the Output {tensor}",                       \
      "make it an Activation or a State to read it back", "6b")                                                        \
  ROW(STORE_WRITES_INPUT, "StoreWritesInput", "stage tensor", "{stage} stores to {tensor}, which is only read",        \
      "store to an Output, Activation or State", "6b")                                                                 \
  ROW(OUTPUT_UNCOVERED, "OutputUncovered", "tensor tile", "tile {tile} of {tensor} is never written",                  \
      "give the work list an item, or the stores a pattern, that covers it", "6c")                                     \
  ROW(OUTPUT_OVERLAP, "OutputOverlap", "tensor tile", "tile {tile} of {tensor} is written twice or is not in it",      \
      "make the items' rectangles and the stores' patterns disjoint and inside the tensor", "6c")                      \
  ROW(OPERAND_DTYPE_MISMATCH, "OperandDtypeMismatch", "stage buffer expected found",                                   \
      "{stage} multiplies {expected} but {buffer} holds {found}", "give operand and buffer one format", "7")           \
  ROW(INTERM_NARROWER_THAN_ACC, "IntermNarrowerThanAcc", "stage interm acc found",                                     \
      "{stage} spills {acc} sums to {interm}, which holds {found}",                                                    \
      "widen the spill buffer, or declare numerics AllowSpillRounding", "7")                                           \
  ROW(ACC_TILES_EXCEEDED, "AccTilesExceeded", "stage needed available",                                                \
      "{stage} needs {needed} accumulator tiles of {available}", "use a smaller sub-block or raise acc_tiles_used",    \
      "7")                                                                                                             \
  ROW(GENERIC_OPERAND_COUNT, "GenericOperandCount", "stage operands maps",                                             \
      "{stage} has {operands} ins and {maps} maps", "give every operand one map", "7")                                 \
  ROW(GENERIC_OPERAND_OUT_OF_RANGE, "GenericOperandOutOfRange", "stage operand operands",                              \
      "the body of {stage} names operand {operand} of {operands}", "name operands from 0 on", "7")                     \
  ROW(CONTRACTION_MALFORMED, "ContractionMalformed", "stage reason", "{stage}: {reason}",                              \
      "a Generic has rows, columns and at most one contraction: a Sum over variable 7", "7")                           \
  ROW(INDIRECT_OPERAND_OUT_OF_RANGE, "IndirectOperandOutOfRange", "stage operand operands",                            \
      "an index of {stage} comes from operand {operand} of {operands}", "take the index from one of the ins", "7")     \
  ROW(INDIRECT_MALFORMED, "IndirectMalformed", "stage reason", "{stage}: {reason}",                                    \
      "give a modulus, strides and a bound that mean something", "7, 8")                                               \
  ROW(INDIRECT_OUT_WITHOUT_SCATTER, "IndirectOutWithoutScatter", "stage",                                              \
      "{stage} has an indirect output that no store scatters",                                                         \
      "let a store with an indirect tile address read one of its outs", "7")                                           \
  ROW(ARG_MAX_OUTPUT_NOT_INTEGER, "ArgMaxOutputNotInteger", "stage found", "{stage} packs an index as {found}",        \
      "give the output buffer an integer format", "7")                                                                 \
  ROW(INDIRECT_INDEX_NOT_AN_OPERAND, "IndirectIndexNotAnOperand", "stage buffer",                                      \
      "{stage} is indexed by {buffer}, which it does not read", "add the index buffer to its ins", "8")                \
  ROW(BLOCK_DIVISIBILITY, "BlockDivisibility", "what value divisor", "the plan's {what}: {value} against {divisor}",   \
      "choose sub-blocks and K blocks that divide the site's block and K", "9")                                        \
  ROW(GRID_MISMATCH, "GridMismatch", "expected found", "the plan's grid is {found}, its result needs {expected}",      \
      "the grid is the result's tiles over the site's block, rounded up; for a State 1 x items", "9")                  \
  ROW(PHASE_ORDER, "PhaseOrder", "have missing", "the program has a {have} but no {missing}",                          \
      "run the passes in order, or take the {have} out", "10")                                                         \
  ROW(STAGE_UNPLACED, "StageUnplaced", "stage", "{stage} has no site or no engine",                                    \
      "place every stage: site, site_of and engine_of", "11")                                                          \
  ROW(ENGINE_SITE_MISMATCH, "EngineSiteMismatch", "stage", "{stage} is at one site and its placement at another",      \
      "give the stage, site_of and its engine one site", "11")                                                         \
  ROW(ENGINE_ROLE_MISMATCH, "EngineRoleMismatch", "stage",                                                             \
      "{stage} is on an engine of the wrong kind, or says another role",                                               \
      "put loads, stores and receives on movement engines, all else on compute", "11")                                 \
  ROW(CROSS_SITE_LOCAL_EDGE, "CrossSiteLocalEdge", "edge", "{edge} is local and joins two sites",                      \
      "use a semaphore, token or barrier between sites", "11")                                                         \
  ROW(LOCAL_CROSS_SITE_EDGE, "LocalCrossSiteEdge", "edge", "{edge} crosses sites and joins one site to itself",        \
      "use Fifo or ValidReady within a site", "11")                                                                    \
  ROW(GROUP_MALFORMED, "GroupMalformed", "group reason", "{group}: {reason}",                                          \
      "a row group is one row sent from its left end, a column group one column sent from its top", "11")              \
  ROW(GROUP_MEMBER_MISMATCH, "GroupMemberMismatch", "group site reason", "{group} at {site}: {reason}",                \
      "give every site of the group one member, alike in buffer and offset", "11")                                     \
  ROW(ITEM_COUNT_MISMATCH, "ItemCountMismatch", "group",                                                               \
      "a member of {group} runs another number of items than its sender", "give all sites of the group as many items", \
      "11")                                                                                                            \
  ROW(MEMORY_UNMAPPED, "MemoryUnmapped", "buffer", "{buffer} has no place in memory", "map every buffer, and no more", \
      "11, 12")                                                                                                        \
  ROW(MEMORY_OVERLAP, "MemoryOverlap", "site a b", "{a} and {b} share bytes at {site} in one phase",                   \
      "move one of them, or declare an alias", "12")                                                                   \
  ROW(TRIP_MALFORMED, "TripMalformed", "trip reason", "{trip}: {reason}",                                              \
      "read a trip from an element of an Input, with a count of at least one, and loop to it", "13")                   \
  ROW(TRIP_LOOP_MALFORMED, "TripLoopMalformed", "reason | site engine", "engine {engine} of {site}: {reason}",         \
      "keep a loop run to a trip to local hand-offs, reads and compute, with the trip's greatest count", "13")         \
  ROW(DUPLICATE_ENGINE_PROGRAM, "DuplicateEngineProgram", "site engine", "engine {engine} of {site} has two programs", \
      "merge them", "14")                                                                                              \
  ROW(STAGE_NOT_SCHEDULED, "StageNotScheduled", "stage op", "{stage} has no {op} in the schedule",                     \
      "schedule it, or remove the stage", "14")                                                                        \
  ROW(ACC_IMBALANCE, "AccImbalance", "site acquires releases | engine",                                                \
      "engine {engine} of {site} acquires the accumulator {acquires} times and releases it {releases} times",          \
      "release after every acquire, for every count of a trip", "14")                                                  \
  ROW(ACCUMULATOR_NEVER_COMPUTED, "AccumulatorNeverComputed", "site engine",                                           \
      "engine {engine} of {site} packs an accumulator it did not compute", "compute between acquire and pack", "14")   \
  ROW(COUNTING_IMBALANCE, "CountingImbalance", "buffer reserved pushed popped",                                        \
      "{buffer}: {reserved} pages reserved, {pushed} pushed, {popped} popped",                                         \
      "reserve, push and pop equally, for every count of a trip", "14")                                                \
  ROW(SECTION_BARRIER_UNBALANCED, "SectionBarrierUnbalanced", "sem participants sites incs wait_ops",                  \
      "{sem} joins {participants} programs at {sites} sites: {incs} posts, {wait_ops} waits",                          \
      "a gather has one site, a post a program and one wait; a release one post a site and a wait a program", "14")    \
  ROW(SEMAPHORE_IMBALANCE, "SemaphoreImbalance", "sem incs waits", "{sem}: {incs} increments, {waits} waited for",     \
      "wait for as many as arrive", "14")                                                                              \
  ROW(SEMAPHORE_NOT_RESET, "SemaphoreNotReset", "sem waits resets", "{sem}: {waits} waits, {resets} resets",           \
      "reset it once a wait: to Count(0), or to Invalid at the receiver", "14")                                        \
  ROW(SECTION_BARRIER_MISPLACED, "SectionBarrierMisplaced", "section site engine what",                                \
      "engine {engine} of {site}, at the rendezvous of {section}: {what}",                                             \
      "arrive after the section's last op, wait for the release before the next section's first", "15")                \
  ROW(HANDSHAKE_NOT_REQUIRED, "HandshakeNotRequired", "kind | edge", "{edge} uses {kind}, which is not required",      \
      "list {kind} in requires.handshakes", "16")

#define WEFT_OWN_VIOLATIONS(ROW)                                                                                       \
  ROW(ZERO_TILE_EXTENT, "ZeroTileExtent", "rows cols", "the tile is {rows} x {cols}", "give the tile extents above 0", \
      "17")                                                                                                            \
  ROW(SECTION_OUTPUT_MISSING, "SectionOutputMissing", "section tensor",                                                \
      "the output of {section} is {tensor}, which does not exist", "name one of the program's tensors, or null", "17") \
  ROW(SITE_ITEM_MISSING, "SiteItemMissing", "site item", "the items of {site} include {item}, which does not exist",   \
      "list only work items of the program", "17")                                                                     \
  ROW(SEMAPHORE_MISSING, "SemaphoreMissing", "sem | site engine",                                                      \
      "engine {engine} of {site} names {sem}, which does not exist", "name one of the program's semaphores", "17")     \
  ROW(PAGE_BUFFER_MISSING, "PageBufferMissing", "buffer | site engine",                                                \
      "engine {engine} of {site} hands over pages of {buffer}, which does not exist",                                  \
      "name one of the program's buffers", "17")                                                                       \
  ROW(SIZE_OVERFLOW, "SizeOverflow", "what | of", "{of}: {what} is too large to count",                                \
      "no size, offset or count may leave 64 bits (a place in memory: 32)", "17")                                      \
  ROW(WORK_BOUND, "WorkBound", "what | of", "{of}: {what} is more than weft checks",                                   \
      "cut the tensor: at most 2^28 tiles each", "17")                                                                 \
  ROW(BODY_MALFORMED, "BodyMalformed", "stage reason", "the body of {stage}: {reason}",                                \
      "list nodes after their children, the root last", "18")                                                          \
  ROW(SCALAR_MALFORMED, "ScalarMalformed", "stage reason", "the scalar body of {stage}: {reason}",                     \
      "name inputs below n_in and cells before the one that reads them", "18")                                         \
  ROW(SEGMENTS_MALFORMED, "SegmentsMalformed", "stage segments", "{stage} has {segments} segments",                    \
      "use 1 to 32 segments, and more than 1 only where a Sum folds", "18")                                            \
  ROW(BIAS_NOT_AN_OPERAND, "BiasNotAnOperand", "stage buffer", "{stage} adds {buffer}, which it does not read",        \
      "add the bias to its ins", "18")                                                                                 \
  ROW(ALL_REDUCE_TENSOR_MISSING, "AllReduceTensorMissing", "stage tensor",                                             \
      "{stage} names {tensor}, which does not exist", "name one of the program's tensors", "18")                       \
  ROW(ALL_REDUCE_COMBINE, "AllReduceCombine", "stage reason", "{stage}: {reason}",                                     \
      "combine with a Generic that has a map for each of the ins", "18")                                               \
  ROW(VALUE_COUNT, "ValueCount", "tensor values elements", "{tensor} has {elements} elements and {values} values",     \
      "give as many values as elements", "18")                                                                         \
  ROW(PARTIAL_MALFORMED, "PartialMalformed", "tensor reason", "the partial of {tensor}: {reason}",                     \
      "hold segments first to first + count of `of`, to be folded by Sum, Max or Min", "18")                           \
  ROW(SHARD_MALFORMED, "ShardMalformed", "tensor reason", "the shard of {tensor}: {reason}",                           \
      "place the tensor's rows and columns inside the dataset's", "18")                                                \
  ROW(SHAPE_MISMATCH, "ShapeMismatch", "tensor", "the shape of {tensor} is not that of its dataset",                   \
      "the shape's product is the dataset's rows times columns", "18")                                                 \
  ROW(K_TRIP_MISSING, "KTripMissing", "trip", "the work list runs to {trip}, which does not exist",                    \
      "name one of the program's trips", "18")                                                                         \
  ROW(STAGE_TRIP_MALFORMED, "StageTripMalformed", "stage reason", "{stage}: {reason}",                                 \
      "name one of the program's trips, counting as many K blocks at most as the product has, and fold in one "        \
      "segment",                                                                                                       \
      "18")                                                                                                            \
  ROW(LINK_TENSOR_MISSING, "LinkTensorMissing", "link tensor", "{link} moves {tensor}, which does not exist",          \
      "name one of the program's tensors", "18")                                                                       \
  ROW(LINK_SECTION_MISSING, "LinkSectionMissing", "link section",                                                      \
      "{link} comes after {section}, which does not exist", "name one of the program's sections, or null", "18")       \
  ROW(CHIP_MISSING, "ChipMissing", "chip | by chips", "{by} is on chip {chip} of {chips}", "use chips below `chips`",  \
      "18")                                                                                                            \
  ROW(LINK_TO_ITSELF, "LinkToItself", "link chip", "{link} crosses to the program's own chip {chip}",                  \
      "name the chip at the other end", "18")                                                                          \
  ROW(ARITHMETIC_UNKNOWN, "ArithmeticUnknown", "version", "the program follows arithmetic version {version}",          \
      "use a weft of that version", "18")                                                                              \
  ROW(OP_STAGE_MISSING, "OpStageMissing", "stage | site engine",                                                       \
      "engine {engine} of {site} serves {stage}, which does not exist", "name one of the program's stages", "18")      \
  ROW(OP_TENSOR_MISSING, "OpTensorMissing", "tensor | site engine",                                                    \
      "engine {engine} of {site} moves {tensor}, which does not exist", "name one of the program's tensors", "18")     \
  ROW(OP_BUFFER_MISSING, "OpBufferMissing", "buffer | site engine",                                                    \
      "engine {engine} of {site} uses {buffer}, which does not exist", "name one of the program's buffers", "18")      \
  ROW(OP_GROUP_MISSING, "OpGroupMissing", "group | site engine",                                                       \
      "engine {engine} of {site} names {group}, which does not exist", "name one of the placement's groups", "18")     \
  ROW(CLAIM_WITHOUT_REASON, "ClaimWithoutReason", "reason", "the claim is Approx and says no reason",                  \
      "say what rounds, or claim Exact", "18")                                                                         \
  ROW(SECTION_PLAN_MALFORMED, "SectionPlanMalformed", "section reason", "the plan of {section}: {reason}",             \
      "choose sub-blocks and K blocks that divide the site's block and the section's K", "18")                         \
  ROW(SITE_OUTSIDE_MESH, "SiteOutsideMesh", "site | stage mesh", "{stage} is at {site} of a mesh of {mesh}",           \
      "place stages inside the mesh, or declare a larger one", "18")                                                   \
  ROW(INTERCONNECT_NOT_REQUIRED, "InterconnectNotRequired", "kind | by", "{by} uses {kind}, which is not required",    \
      "list {kind} in requires.interconnect", "18")                                                                    \
  ROW(ORIGIN_MIXED, "OriginMixed", "stage other origin",                                                               \
      "{stage} and {other} say that they are copies of one stage, {origin}, and are of different kinds",               \
      "give copies the origin that they were made from", "18")                                                         \
  ROW(READY_MISMATCH, "ReadyMismatch", "edge reason", "{edge}: {reason}",                                              \
      "wait for as many receivers as the ready counter of the edge expects", "18")                                     \
  ROW(READY_SITE_MISSING, "ReadySiteMissing", "sem site | from engine",                                                \
      "engine {engine} of {from} uses {sem} at {site}, where it is not", "list the site among the semaphore's", "18")

#endif
