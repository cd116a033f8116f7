// Pod is all that an image of the tests' has: it serves one line, says its environment,
// or ends.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	args := append(os.Args[1:], "", "")
	switch args[0] {
	case "serve": // PORT TEXT
		l, err := net.Listen("tcp", ":"+args[1])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go serve(l, strings.Join(args[2:], " "))
	case "env":
		for _, line := range os.Environ() {
			fmt.Println(line)
		}
	case "end": // CODE
		for _, line := range append(os.Environ(), "the last thing it says") {
			fmt.Fprintln(os.Stderr, line)
		}
		code, _ := strconv.Atoi(args[1])
		os.Exit(code)
	case "write": // FILE TEXT
		if err := os.WriteFile(args[1], []byte(args[2]), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	<-stop
}

func serve(l net.Listener, text string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		fmt.Fprintln(c, strings.TrimSpace(text))
		_ = c.Close()
	}
}
