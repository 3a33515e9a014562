// What the program gpu_tests can do besides the tests themselves. Each prints to stdout and returns
// an exit code.
#ifndef LACUNA_TESTS_GPU_H
#define LACUNA_TESTS_GPU_H

int gpu_facts(void);                                  // the device, as JSON
int gpu_rates(const char *size);                      // what it can do at most, as JSON
int gpu_model(const char *shape, const char *path);   // writes a seeded random model
int gpu_speeds(const char *bench, const char *rates); // a table of what `lacuna bench` measured

#endif
