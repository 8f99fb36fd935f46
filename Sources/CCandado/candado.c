#include "candado.h"
