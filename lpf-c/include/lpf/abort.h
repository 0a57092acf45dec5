/* lpf_abort and LPF_HAS_ABORT, which lpf/core.h declares. */
#include "core.h"
