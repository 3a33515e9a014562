// YAML to nodes. The only file that knows libyaml.
#ifndef LACUNA_EVALS_EXPERIMENT_YAML_H
#define LACUNA_EVALS_EXPERIMENT_YAML_H

#include "evals/experiment_node.h"

#define YAML_BYTES_MOST (1 << 20)

// One document of a subset that means the same to every reader: UTF-8, line feeds, no tags, no
// merge keys, no directives, text keys given once, aliases bounded. `origin` is NULL for the file
// itself, else the option that the text comes from. NULL when no tree could be made; what is wrong
// is in `d`.
struct node *yaml_read(struct str source, const char *origin, struct diagnostics *d);

#endif
