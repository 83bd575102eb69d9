package main

func runBadInput(args []string) int  { return 2 }
func runWatchList(args []string) int { return 2 }
