package main

func runInformerPods(args []string) int { return 2 }
func runCrashloop(args []string) int    { return 2 }
func runBadInput(args []string) int     { return 2 }
func runWatchList(args []string) int    { return 2 }
