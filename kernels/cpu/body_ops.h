// All bodies of an op table, in order.
#include "kernels/cpu/body.h"
#include "kernels/cpu/body_rows.h"
#include "kernels/cpu/body_compact.h"
#ifdef WIDE_PANELS
#include "kernels/cpu/body_block.h"
#include "kernels/cpu/body_wide.h"
#endif
#include "kernels/cpu/body_matmul.h"
#include "kernels/cpu/body_kv.h"
#include "kernels/cpu/body_unit.h"
#include "kernels/cpu/body_expanded.h"
#include "kernels/cpu/body_softmax.h"
#include "kernels/cpu/body_watch.h"
#include "kernels/cpu/body_attention.h"
#include "kernels/cpu/body_decode.h"
#include "kernels/cpu/body_table.h"
