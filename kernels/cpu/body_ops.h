// All bodies of an op table, in order.
#include "kernels/cpu/body.h"
#include "kernels/cpu/body_rows.h"
#include "kernels/cpu/body_matmul.h"
#include "kernels/cpu/body_kv.h"
#include "kernels/cpu/body_attention.h"
#include "kernels/cpu/body_decode.h"
#include "kernels/cpu/body_table.h"
