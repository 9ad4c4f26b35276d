package modelsim

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-epp/weir/internal/modelsim/engine"
	"github.com/weir-epp/weir/internal/splitmix"
)

// visit is one inference request being served.
type visit struct {
	h       *Handler
	api     api
	number  uint64
	place   int // index in the record log
	outcome Outcome
	worked  *answer // nil without any work
	delivery
}

// infer serves one inference request. Only infer counts its end.
func (h *Handler) infer(w http.ResponseWriter, r *http.Request, api api) {
	v := visit{h: h, api: api, number: h.started.Add(1), outcome: Failed}
	v.delivery = delivery{w: w, ctx: r.Context(), quirk: &plain}
	h.enter()
	body := buffers.Get().(*bytes.Buffer)
	body.Reset()
	defer func() { // also when a reset panics
		buffers.Put(body)
		v.end()
	}()

	from := r.Body
	if most := h.cfg.MaxBodyBytes; most > 0 {
		from = http.MaxBytesReader(w, from, int64(most))
	}
	_, err := body.ReadFrom(from)
	v.record(r, body.Bytes())
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		v.refuse(http.StatusRequestEntityTooLarge, "the body has more than "+strconv.Itoa(h.cfg.MaxBodyBytes)+" bytes")
		return
	}
	if err != nil {
		v.outcome = Aborted
		return
	}
	v.quirk = h.quirkFor(r)
	if v.pause(v.quirk.HeaderDelay) != nil {
		v.outcome = Aborted
		return
	}
	switch {
	case v.quirk.Reset == ResetBeforeHeaders:
		panic(http.ErrAbortHandler)
	case v.quirk.Status != 0:
		v.refuse(v.quirk.Status, "injected by the test")
	case h.cfg.Instant:
		v.instant(body.Bytes())
	default:
		v.work(body.Bytes())
	}
}

// work parses the request and serves it with the engine.
func (v *visit) work(body []byte) {
	in, err := v.h.parse(v.api, body)
	if err != nil {
		v.refuse(http.StatusBadRequest, err.Error())
		return
	}
	if in.model != "" && in.model != v.h.cfg.Model {
		v.refuse(http.StatusNotFound, "The model `"+in.model+"` does not exist.")
		return
	}
	a := v.h.answerTo(in, v.number)
	v.worked = a
	jobs := make([]engine.Job, len(a.tokens))
	for i := range jobs {
		prompt := i / in.choices
		jobs[i] = engine.Job{
			Prompt: in.prompts[prompt], Output: v.h.outputTokens(in, a.key+uint64(i)<<32), Blocks: in.blocks[prompt], Streamed: in.stream,
		}
	}
	work := v.h.runner.start(jobs)
	// The engine's work ends here in any case.
	defer v.h.runner.abandon(work, a.tokens)
	if in.stream {
		err = v.stream(a, work)
	} else {
		err = v.answer(a, work)
	}
	v.outcome = Completed
	if err != nil {
		v.outcome = Aborted
	}
}

// answerTo returns the empty answer to a request.
func (h *Handler) answerTo(in *inference, number uint64) *answer {
	n := len(in.prompts) * in.choices
	return &answer{
		key:          splitmix.Mix(h.cfg.Seed) + number,
		created:      time.Now().Unix(),
		model:        h.model,
		prompts:      in.prompts,
		tokens:       make([]int, n),
		cached:       make([]int, n),
		limit:        in.limit,
		includeUsage: in.includeUsage,
		details:      h.cfg.PromptTokensDetails,
		sent:         make([]int, n),
	}
}

// answer waits for the end and sends everything at once.
func (v *visit) answer(a *answer, work *work) error {
	for done := false; !done; {
		var err error
		if done, err = v.h.runner.await(v.ctx, work, a.tokens); err != nil {
			return err
		}
	}
	v.h.runner.cachedOf(work, a.cached)
	body := a.whole(make([]byte, 0, 512+10*a.outputTokens()), v.api)
	v.firstToken()
	return v.whole(http.StatusOK, body)
}

// stream sends the headers at once, and the tokens as they arrive.
func (v *visit) stream(a *answer, work *work) error {
	v.open()
	buf := a.opening(make([]byte, 0, 1024), v.api)
	if err := v.send(buf); err != nil {
		return err
	}
	tokens := make([]int, len(a.tokens))
	for done, first := false, true; !done; {
		var err error
		if done, err = v.h.runner.await(v.ctx, work, tokens); err != nil {
			return err
		}
		buf = a.news(buf[:0], v.api, tokens)
		if first {
			first = false
			v.firstToken()
			if v.quirk.Reset == ResetMidAnswer {
				_ = v.send(buf)
				v.reset()
			}
		}
		if done {
			v.h.runner.cachedOf(work, a.cached)
			buf = a.closing(buf, v.api)
		}
		if err := v.send(buf); err != nil {
			return err
		}
	}
	return nil
}

// send writes events and flushes them.
func (v *visit) send(events []byte) error {
	if len(events) == 0 {
		return nil
	}
	if err := v.write(events); err != nil {
		return err
	}
	v.flush()
	return nil
}

// refuse sends an error, without a body if the status has none.
func (v *visit) refuse(status int, message string) {
	if status == http.StatusNoContent || status == http.StatusNotModified {
		v.headers(nil)
		v.w.WriteHeader(status)
		return
	}
	_ = v.whole(status, failureBody(v.api, status, message))
}
