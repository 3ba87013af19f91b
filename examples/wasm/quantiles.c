/* Median and 95th percentile of numbers: reads [3, 1.5, ...] as JSON, writes {"median": …, "p95": …}.
   It computes and nothing else, so running it again gives the same result. Build: clang --target=wasm32-wasi -O2 -o quantiles.wasm quantiles.c */
#include <stdio.h>
#include <stdlib.h>

static double numbers[65536];

static int ascending(const void *one, const void *other) {
  double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}

int main(void) {
  size_t count = 0;
  char mark;
  if (scanf(" %c", &mark) != 1 || mark != '[') {
    fputs("the input is a JSON list of numbers\n", stderr);
    return 1;
  }
  while (scanf(" %lf %c", &numbers[count], &mark) == 2) {
    count++;
    if (mark == ']') break;
    if (mark != ',' || count == sizeof numbers / sizeof *numbers) {
      fputs("a list has at most 65536 numbers, with commas between them\n", stderr);
      return 1;
    }
  }
  if (count == 0 || mark != ']') {
    fputs("the list is empty, or holds something that is no number\n", stderr);
    return 1;
  }
  qsort(numbers, count, sizeof *numbers, ascending);
  printf("{\"median\": %.17g, \"p95\": %.17g}\n", numbers[(count - 1) / 2], numbers[(count - 1) * 95 / 100]);
  return 0;
}
