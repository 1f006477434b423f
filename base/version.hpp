#pragma once

// The version of the library. CMake and the Python package read it from here.
#define TESSERA_VERSION "0.1.0"
