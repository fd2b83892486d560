"""A model of a drive from measurements: what fio measured on the drive, and jobs that measure it."""
