// A temporary folder for tests that sync a lot: in memory where the system has such a place.
#ifndef LACUNA_TESTS_FAST_FOLDER_H
#define LACUNA_TESTS_FAST_FOLDER_H

// Removed with all it holds at exit. Static text that stays valid to the end of the program.
const char *fast_folder(void);
// Empties and removes one folder below it.
void fast_folder_drop(const char *path);

#endif
