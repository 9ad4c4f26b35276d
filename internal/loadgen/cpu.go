package loadgen

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// clockTick is the unit of the times in /proc/PID/stat: USER_HZ, 100 per second on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// ProcessCPU is the processor time that a process has used since its start, user and system, of all its threads,
// living and ended, without its children. Its resolution is 10 ms, so let a measurement use a second or more. It
// reads /proc, so it works on Linux alone.
func ProcessCPU(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("loadgen: processor time: %w", err)
	}
	used, err := parseStat(stat)
	if err != nil {
		return 0, fmt.Errorf("loadgen: processor time of %d: %w", pid, err)
	}
	return used, nil
}

// parseStat adds utime and stime, fields 14 and 15 of proc_pid_stat(5). The name, field 2, is in parentheses and may
// hold anything, parentheses and spaces too, so the fields are counted after the last one.
func parseStat(stat []byte) (time.Duration, error) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const utime, stime = 14 - 3, 15 - 3
	if len(fields) <= stime {
		return 0, fmt.Errorf("only %d fields in %q", len(fields), stat)
	}
	var ticks int64
	for _, field := range [][]byte{fields[utime], fields[stime]} {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}
