/* A folder of its own for a test. */
#ifndef TEMP_FOLDER_H
#define TEMP_FOLDER_H

#define TEMP_FOLDER_SIZE 64

/* Makes an empty folder in /tmp; path gets its name. */
void temp_folder_make(char path[TEMP_FOLDER_SIZE]);
/* Removes the folder with everything in it. */
void temp_folder_remove(const char *path);

#endif
