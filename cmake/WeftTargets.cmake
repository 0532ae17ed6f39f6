# The compile flags and target functions that every room uses.

add_library(weft_flags INTERFACE)
target_include_directories(weft_flags INTERFACE ${PROJECT_SOURCE_DIR}/include)
# Bits: no contraction and no fast-math anywhere; fma is explicit.
target_compile_options(weft_flags INTERFACE -ffp-contract=off -fno-fast-math -fvisibility=hidden
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes -Wmissing-prototypes -Wvla)
target_compile_definitions(weft_flags INTERFACE _GNU_SOURCE)
if(WEFT_WERROR)
  target_compile_options(weft_flags INTERFACE -Werror)
endif()
if(WEFT_SANITIZE)
  target_compile_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE})
endif()

# weft_add_room(NAME LIBS lib...): the static library weft_NAME from every .c file of the current folder.
function(weft_add_room name)
  cmake_parse_arguments(ARG "" "" "LIBS;EXCLUDE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.c)
  foreach(file ${ARG_EXCLUDE})
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  add_library(weft_${name} STATIC ${sources})
  target_link_libraries(weft_${name} PUBLIC ${ARG_LIBS} PRIVATE $<BUILD_INTERFACE:weft_flags>)
  target_include_directories(weft_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  set_property(GLOBAL APPEND PROPERTY WEFT_ROOMS weft_${name}) # what WeftInstall installs
endfunction()

# What tests need to be told under a sanitizer: OpenMP's runtime is not instrumented; its Archer tool explains it to the
# thread sanitizer.
set(WEFT_TEST_ENVIRONMENT)
if(WEFT_SANITIZE MATCHES thread)
  file(GLOB archer_folders /usr/lib/llvm-*/lib)
  find_library(WEFT_ARCHER archer HINTS ${archer_folders} REQUIRED)
  list(APPEND WEFT_TEST_ENVIRONMENT OMP_TOOL_LIBRARIES=${WEFT_ARCHER} TSAN_OPTIONS=ignore_noninstrumented_modules=1)
endif()

# weft_add_test(NAME SOURCES file... LIBS lib... LABELS label... [ARGS arg...] [TIMEOUT seconds]): one cmocka program, one CTest entry.
function(weft_add_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LIBS;LABELS;ARGS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} weft_flags cmocka m)
  target_compile_definitions(${name} PRIVATE WEFT_SOURCE_DIR="${PROJECT_SOURCE_DIR}" WEFT_BINARY_DIR="${PROJECT_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${WEFT_TEST_ENVIRONMENT}")
endfunction()

find_program(WEFT_FUZZ_CLANG NAMES clang-14 clang)
# weft_add_fuzzer(NAME SOURCES pattern... DICTIONARY file LONGEST bytes CORPUS folder...): NAME.c of this folder as a libFuzzer target
# with address and undefined-behaviour sanitizers, compiled with the sources and with base and data, and a slow test of five minutes.
function(weft_add_fuzzer name)
  cmake_parse_arguments(ARG "" "DICTIONARY;LONGEST" "SOURCES;CORPUS" ${ARGN})
  if(NOT WEFT_FUZZ_CLANG)
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/base/*.c ${PROJECT_SOURCE_DIR}/data/*.c)
  list(FILTER sources EXCLUDE REGEX "base/parallel.c$")
  set(program ${CMAKE_CURRENT_BINARY_DIR}/${name})
  set(target ${CMAKE_CURRENT_SOURCE_DIR}/${name}.c)
  add_custom_command(OUTPUT ${program}
    COMMAND ${WEFT_FUZZ_CLANG} -std=gnu17 -O1 -g -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
      -DWEFT_GRAMMARS_INSTALLED="" -DWEFT_GRAMMARS_SOURCE="" -I${PROJECT_SOURCE_DIR}/include -o ${program} ${target} ${sources} -lm
    DEPENDS ${target} ${sources} VERBATIM COMMENT "Compiling ${name}")
  add_custom_target(weft_${name} DEPENDS ${program})
  add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tests/fuzz.sh ${PROJECT_BINARY_DIR} ${program} ${CMAKE_CURRENT_BINARY_DIR}/${name}.work
    ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_DICTIONARY} ${ARG_LONGEST} ${ARG_CORPUS})
  set_tests_properties(${name} PROPERTIES LABELS slow TIMEOUT 900)
endfunction()
