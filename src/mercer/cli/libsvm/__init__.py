"""The programs of LIBSVM, as commands: svm-train on its text files, svm-scale, grid.py and easy.py."""
