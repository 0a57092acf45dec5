/* See lpf/talpf.h. */
#include "lpf/talpf.h"
