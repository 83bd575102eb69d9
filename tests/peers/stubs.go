package main

func runBadInput(args []string) int { return 2 }
