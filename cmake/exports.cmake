# Shared libraries show what lies in their own namespace and hide the rest (exports.map.in).

# tessera_export_own_names(<target> <name> <folder>): a/b is the namespace tessera::a::b.
function(tessera_export_own_names target name folder)
  set(path tessera)
  if(NOT folder STREQUAL base)  # its words lie in tessera itself
    string(APPEND path /${folder})
  endif()
  string(REPLACE / ";" path ${path})
  set(space "")
  foreach(word ${path})
    string(LENGTH ${word} length)
    string(APPEND space ${length}${word})
  endforeach()
  # Globs know no "but internal": what goes on with a part of that word and then leaves it.
  set(word 8internal)
  string(LENGTH ${word} length)
  set(TESSERA_EXPORTS "")
  foreach(at RANGE 1 ${length})
    math(EXPR common "${at} - 1")
    string(SUBSTRING ${word} 0 ${common} start)
    string(SUBSTRING ${word} ${common} 1 letter)
    foreach(kind "" "[KRO]" "K[RO]")  # functions and variables; const, & and && members
      string(APPEND TESSERA_EXPORTS "    _ZN${kind}${space}${start}[!${letter}]*;\n")
    endforeach()
    string(APPEND TESSERA_EXPORTS "    _ZT[ISTV]N${space}${start}[!${letter}]*;\n")
  endforeach()
  set(map ${CMAKE_CURRENT_BINARY_DIR}/exports.map)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/exports.map.in ${map} @ONLY)
  target_link_options(${target} PRIVATE LINKER:--version-script=${map} LINKER:-z,defs)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
endfunction()
