// Golden files for crates/gotemplate: what real Go makes of each case.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

const (
	casesDir  = "cases"
	goldenDir = "../../../crates/gotemplate/tests/golden"
)

// One case as the Rust test reads it: exactly one of Output and Error is set.
type result struct {
	Name     string  `json:"name"`
	Template string  `json:"template"`
	Output   *string `json:"output,omitempty"`
	Error    string  `json:"error,omitempty"`
}

type golden struct {
	Data  json.RawMessage `json:"data"`
	Cases []result        `json:"cases"`
}

var header = regexp.MustCompile(`(?m)^-- (.+) --\n`)

func main() {
	check := flag.Bool("check", false, "change nothing, fail if something would change")
	flag.Parse()
	stale, err := run(*check)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if len(stale) > 0 {
		fmt.Fprintf(os.Stderr, "not up to date, run `go run .` in dev/golden/gotemplate: %s\n", strings.Join(stale, ", "))
		os.Exit(1)
	}
}

// run brings the golden files up to date, or with check lists those that are not.
func run(check bool) (stale []string, err error) {
	files, err := filepath.Glob(filepath.Join(casesDir, "*"))
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		cut := blocks
		if filepath.Ext(file) == ".lines" {
			cut = lines
		}
		want, err := render(cut(string(text)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)) + ".json"
		wanted[name] = true
		target := filepath.Join(goldenDir, name)
		have, err := os.ReadFile(target)
		if err == nil && bytes.Equal(have, want) {
			continue
		}
		if check {
			stale = append(stale, name)
			continue
		}
		if err := os.WriteFile(target, want, 0o644); err != nil {
			return nil, err
		}
	}
	old, err := filepath.Glob(filepath.Join(goldenDir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range old {
		if name := filepath.Base(file); !wanted[name] {
			if check {
				stale = append(stale, name)
			} else if err := os.Remove(file); err != nil {
				return nil, err
			}
		}
	}
	sort.Strings(stale)
	return stale, nil
}

type section struct{ name, text string }

// blocks cuts a file of cases of many lines; the first section is the data.
func blocks(text string) (sections []section) {
	marks := header.FindAllStringSubmatchIndex(text, -1)
	for i, mark := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		sections = append(sections, section{text[mark[2]:mark[3]], strings.TrimSuffix(text[mark[1]:end], "\n")})
	}
	return sections
}

// lines cuts a file of cases of one line each; the first line is the data.
func lines(text string) (sections []section) {
	for i, line := range strings.Split(text, "\n") {
		switch {
		case i == 0:
			sections = append(sections, section{"data", line})
		case line != "" && !strings.HasPrefix(line, "# "):
			sections = append(sections, section{line, line})
		}
	}
	return sections
}

// render makes the golden file of one file of cases.
func render(sections []section) ([]byte, error) {
	if len(sections) == 0 || sections[0].name != "data" {
		return nil, fmt.Errorf("does not begin with data")
	}
	out := golden{Data: json.RawMessage(sections[0].text)}
	seen := map[string]bool{}
	for _, section := range sections[1:] {
		if seen[section.name] {
			return nil, fmt.Errorf("case %q is there twice", section.name)
		}
		seen[section.name] = true
		data, err := decode(out.Data)
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		result := result{Name: section.name, Template: section.text}
		output, err := execute(section.text, data)
		if err != nil {
			result.Error = err.Error()
		} else {
			result.Output = &output
		}
		out.Cases = append(out.Cases, result)
	}
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(out)
	return buf.Bytes(), err
}

func execute(text string, data any) (string, error) {
	parsed, err := template.New("case").Funcs(sprig.TxtFuncMap()).Parse(text)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = parsed.Execute(&out, data)
	return out.String(), err
}

// decode reads JSON afresh for each case, as templates may change their data.
func decode(raw []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var data any
	if err := decoder.Decode(&data); err != nil {
		return nil, err
	}
	return numbers(data), nil
}

// numbers makes int of integers and float64 of the rest.
func numbers(value any) any {
	switch value := value.(type) {
	case json.Number:
		if n, err := value.Int64(); err == nil {
			return int(n)
		}
		f, _ := value.Float64()
		return f
	case []any:
		for i := range value {
			value[i] = numbers(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = numbers(value[key])
		}
	}
	return value
}
