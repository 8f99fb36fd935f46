#include <candado.h>
#include <stdio.h>

int main(void) {
    puts(candado_version());
    return 0;
}
