# weft_add_program(NAME MODEL file CHIPS n [TARGET name] [SPLIT preset] [SHARD sharding...] [OPTIONS option...])
#
# Compiles a model for n chips while the project is built, again whenever the model or weft changes. The target NAME is part
# of `all`; its programs, run and run-local, are in the folder ${NAME_FOLDER}. The library NAME::program is the same program
# for a host application to link.
#   MODEL    a program or model file, relative to the current source folder
#   CHIPS    how many chips
#   TARGET   the target description, `cpu` by default
#   SPLIT    a preset: columns, rows, batch, column-row, pipeline, or axis=preset,...
#   SHARD    shardings as `weft shard --shard` takes them, one an argument
#   OPTIONS  anything else for `weft compile`
function(weft_add_program name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "MODEL;CHIPS;TARGET;SPLIT" "SHARD;OPTIONS")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "weft_add_program(${name}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_MODEL OR NOT ARG_CHIPS)
    message(FATAL_ERROR "weft_add_program(${name}): MODEL and CHIPS are required")
  endif()
  if(NOT ARG_TARGET)
    set(ARG_TARGET cpu)
  endif()
  set(options --chips ${ARG_CHIPS} --target ${ARG_TARGET} ${ARG_OPTIONS})
  if(ARG_SPLIT)
    list(APPEND options --split ${ARG_SPLIT})
  endif()
  foreach(sharding ${ARG_SHARD})
    list(APPEND options --shard ${sharding})
  endforeach()

  cmake_path(ABSOLUTE_PATH ARG_MODEL BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE model)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
  set(library ${folder}/libprogram.so)
  find_program(WEFT_NINJA ninja REQUIRED)
  # The stamp is newer than its inputs even when the programs did not change and so were left alone.
  add_custom_command(OUTPUT ${folder}/built.stamp
    COMMAND weft::weft compile ${model} ${options} -o ${folder}
    COMMAND ${WEFT_NINJA} --quiet -C ${folder}
    COMMAND ${CMAKE_COMMAND} -E touch ${folder}/built.stamp
    BYPRODUCTS ${library} ${folder}/run ${folder}/run-local
    DEPENDS ${model} weft::weft
    COMMENT "Compiling ${ARG_MODEL} for ${ARG_CHIPS} chips" VERBATIM)
  add_custom_target(${name} ALL DEPENDS ${folder}/built.stamp)

  file(MAKE_DIRECTORY ${folder})
  add_library(${name}::program SHARED IMPORTED GLOBAL)
  set_target_properties(${name}::program PROPERTIES IMPORTED_LOCATION ${library} IMPORTED_NO_SONAME ON)
  target_include_directories(${name}::program INTERFACE ${folder})
  add_dependencies(${name}::program ${name})
  set(${name}_FOLDER ${folder} PARENT_SCOPE)
endfunction()
