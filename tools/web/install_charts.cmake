# Puts ECharts into OUT by the lock file in WEB; an empty file when npm cannot deliver it, so that a
# build without a network goes on. Called by the build, with NPM, WEB, WORK and OUT.
file(MAKE_DIRECTORY ${WORK})
foreach(name package.json package-lock.json)
  configure_file(${WEB}/${name} ${WORK}/${name} COPYONLY)
endforeach()
execute_process(COMMAND ${NPM} ci --ignore-scripts --no-audit --no-fund WORKING_DIRECTORY ${WORK}
                RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE why TIMEOUT 120)
set(charts ${WORK}/node_modules/echarts/dist/echarts.min.js)
if(failed OR NOT EXISTS ${charts})
  message(STATUS "npm could not install ECharts, so --html will say it is missing: ${why}")
  file(WRITE ${OUT} "")
else()
  configure_file(${charts} ${OUT} COPYONLY)
endif()
