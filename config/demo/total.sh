#!/bin/sh
# Prints the sum of its arguments.
sum=0
for number in "$@"; do
  sum=$number
done
echo "$sum"
