// The plug-in with the GPU's kernels (kernels/cuda/ops.h), found when the program runs. There is
// one in a process; it stays to the end. From one thread, before any backend is opened on another.
#ifndef LACUNA_ENGINE_BACKEND_PLUGIN_H
#define LACUNA_ENGINE_BACKEND_PLUGIN_H

#include "engine/base/err.h"

struct cuda_ops;

// The table in force; without one, that of liblacuna-cuda.so beside the program, in ../lib/lacuna
// from there, or where it was installed.
int backend_plugin_table(const struct cuda_ops **out, struct err *e);

// Puts the table of another file in force, or one that is linked to the program; NULL: none.
int backend_plugin_load(const char *path, struct err *e);
void backend_plugin_use(const struct cuda_ops *table);

#endif
