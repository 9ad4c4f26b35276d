// The questions of the dashboard, as data: rows of panels, each with its queries and its thresholds. The test of
// test/observe takes queries and thresholds from the generated file, makes the fault that each question is about, and
// expects a red value for it.
//
// A threshold is { from, red }: from this value on the colour is red, or green again. The first has no `from`.
'use strict';

const RATE = '$__rate_interval';

// weir and envoys select the series of Weir, and those of the Envoys before it, with further matchers.
const weir = (name, more = '') => `${name}{namespace=~"$namespace",job=~"$job"${more && ',' + more}}`;
const envoys = (name) => `${name}{job=~"$envoys"}`;

// Outcomes that are no rejection: the request was served, or its client did not wait.
const SERVED_OR_GONE = 'outcome!~"dispatched|client-cancelled|deadline-exceeded"';

const redFrom = (value) => [{ red: false }, { from: value, red: true }];
const greenFrom = (value) => [{ red: true }, { from: value, red: false }];

const rows = [
  {
    title: 'Why are requests rejected?',
    panels: [
      {
        title: 'Why are requests rejected?',
        description:
          'The rejected part of all requests, by outcome. docs/operating.md explains each outcome and its cure; ' +
          '/debug/rejections of Weir names the limit, its value and the flows that hold most of it.',
        unit: 'percentunit',
        thresholds: redFrom(0.05),
        queries: [
          {
            legend: '{{outcome}}',
            expr:
              `sum by (outcome) (rate(${weir('weir_requests_total', SERVED_OR_GONE)}[${RATE}]))` +
              ` / on () group_left () sum (rate(${weir('weir_requests_total')}[${RATE}]))`,
          },
        ],
      },
      {
        title: 'Whose requests are rejected?',
        description:
          "The rejected part of each flow's own requests, for the ten flows with the largest. One flow: it is above a " +
          'limit of its own. Many flows: the pool is too small for all.',
        unit: 'percentunit',
        thresholds: redFrom(0.05),
        queries: [
          {
            legend: '{{flow}}',
            expr:
              `topk(10, sum by (flow) (rate(${weir('weir_flow_rejections_total', SERVED_OR_GONE)}[${RATE}]))` +
              ` / sum by (flow) (rate(${weir('weir_flow_requests_total')}[${RATE}])))`,
          },
        ],
      },
    ],
  },
  {
    title: 'Who waits for whom?',
    panels: [
      {
        title: 'Who waits?',
        description: 'Waiting requests of the ten flows with the most. /debug/flows says what each of them waits for.',
        unit: 'short',
        thresholds: redFrom(10),
        queries: [{ legend: '{{flow}}', expr: `topk(10, sum by (flow) (${weir('weir_flow_queue_length')}))` }],
      },
      {
        title: 'How long do they wait?',
        description:
          'The mean time in the queue of requests that waited and have ended, of the ten flows with the longest. Requests ' +
          'that still wait are not in it: /debug/flows has the age of the oldest.',
        unit: 's',
        thresholds: redFrom(5),
        queries: [
          {
            legend: '{{flow}}',
            expr:
              `topk(10, sum by (flow) (rate(${weir('weir_flow_queue_wait_seconds_sum')}[${RATE}]))` +
              ` / sum by (flow) (rate(${weir('weir_flow_queue_wait_seconds_count')}[${RATE}])))`,
          },
        ],
      },
      {
        title: 'Whom do they wait for?',
        description:
          'The part of all requests in flight that each flow holds, while requests of other flows wait. A flow with most ' +
          'of them is the one that the others wait for. No value: nobody waits, or only for itself.',
        unit: 'percentunit',
        thresholds: redFrom(0.6),
        queries: [
          {
            legend: '{{flow}}',
            expr:
              `(sum by (flow) (${weir('weir_flow_in_flight')}) / on () group_left () sum (${weir('weir_flow_in_flight')})` +
              ` and on () (sum (${weir('weir_flow_queue_length')}) > 0))` +
              ` unless on (flow) (sum by (flow) (${weir('weir_flow_queue_length')})` +
              ` == on () group_left () sum (${weir('weir_flow_queue_length')}))`,
          },
        ],
      },
    ],
  },
  {
    title: 'How full and how healthy is each engine?',
    panels: [
      {
        title: 'How full is each engine?',
        description:
          "Requests in flight at an endpoint over its bound. Full engines with waiting flows are a pool that is too small; " +
          'waiting flows without a full engine wait for something else, which /debug/flows names.',
        unit: 'percentunit',
        thresholds: redFrom(1),
        queries: [
          {
            legend: '{{endpoint}}',
            expr:
              `sum by (endpoint) (${weir('weir_endpoint_in_flight')})` +
              ` / max by (endpoint) (${weir('weir_endpoint_bound')} > 0)`,
          },
        ],
      },
      {
        title: 'Which engine has a queue of its own?',
        description:
          'Requests that wait for room inside an engine, where nothing can order them: its bound is above its slots, or ' +
          'others use it, too.',
        unit: 'short',
        thresholds: redFrom(5),
        queries: [{ legend: '{{endpoint}}', expr: `max by (endpoint) (${weir('weir_endpoint_waiting')})` }],
      },
      {
        title: 'Which engine is not ready?',
        description:
          'Requests that Weir may send to each endpoint at a time. 0: the endpoint is not ready, and gets none.',
        unit: 'short',
        thresholds: greenFrom(1),
        queries: [{ legend: '{{endpoint}}', expr: `max by (endpoint) (${weir('weir_endpoint_bound')})` }],
      },
      {
        title: 'Which engine is slow?',
        description:
          "The mean time of an endpoint's latest requests over the mean of the other endpoints. With one endpoint, or " +
          'models of different sizes in one pool, it says nothing.',
        unit: 'none',
        thresholds: redFrom(2),
        queries: [
          {
            legend: '{{endpoint}}',
            expr:
              `max by (endpoint) (${weir('weir_endpoint_service_seconds')} > 0)` +
              ` * on () group_left () (count (max by (endpoint) (${weir('weir_endpoint_service_seconds')} > 0)) - 1)` +
              ` / (- max by (endpoint) (${weir('weir_endpoint_service_seconds')} > 0)` +
              ` + on () group_left () sum (max by (endpoint) (${weir('weir_endpoint_service_seconds')} > 0)))`,
          },
        ],
      },
      {
        title: 'Which engine hangs?',
        description:
          "The age of the oldest request in flight at an endpoint over the endpoint's usual time for a request. It grows " +
          'without end at an engine that hangs.',
        unit: 'none',
        thresholds: redFrom(20),
        queries: [
          {
            legend: '{{endpoint}}',
            expr:
              `max by (endpoint) (${weir('weir_endpoint_oldest_seconds')})` +
              ` / max by (endpoint) (${weir('weir_endpoint_service_seconds')} > 0)`,
          },
        ],
      },
      {
        title: 'Which engine fails?',
        description:
          "The part of an endpoint's answers with a status of 500 and more; and its circuit, which is 1 while Weir sends " +
          'the endpoint nothing for that reason.',
        unit: 'percentunit',
        thresholds: redFrom(0.05),
        queries: [
          {
            legend: '{{endpoint}} fails',
            expr:
              `sum by (endpoint) (rate(${weir('weir_endpoint_answers_total', 'class="5xx"')}[${RATE}]))` +
              ` / sum by (endpoint) (rate(${weir('weir_endpoint_answers_total')}[${RATE}]))`,
          },
          {
            legend: '{{endpoint}} circuit open',
            expr: `max by (endpoint) (${weir('weir_endpoint_circuit_open')})`,
          },
        ],
      },
    ],
  },
  {
    title: 'Is anything passing Weir by?',
    panels: [
      {
        title: 'Is anything passing Weir by?',
        description:
          'Requests that Envoy sent on without Weir, because its filter fails open; requests that another endpoint served ' +
          'than Weir picked; and requests that came with the destination of another endpoint picker.',
        unit: 'reqps',
        thresholds: redFrom(0.01),
        queries: [
          {
            legend: 'without Weir at {{pod}}{{instance}}',
            expr:
              `sum by (namespace, pod, instance) (rate(${envoys('envoy_http_ext_proc_failure_mode_allowed')}[${RATE}]))`,
          },
          {
            legend: 'served elsewhere than {{endpoint}}',
            expr: `sum by (endpoint) (rate(${weir('weir_served_elsewhere_total')}[${RATE}]))`,
          },
          {
            legend: 'placed before Weir',
            expr: `sum (rate(${weir('weir_extproc_placed_before_total')}[${RATE}]))`,
          },
        ],
      },
    ],
  },
  {
    title: 'Is a weight not kept? Is a tier starved?',
    panels: [
      {
        title: 'Is a weight not kept?',
        description:
          "The share of the service that a waiting flow got in five minutes over the share that its weight entitles it to. " +
          'Below 1 the flow is at a cap or may use only some endpoints (/debug/flows has the reason), or its requests are ' +
          'estimated too high.',
        unit: 'none',
        thresholds: greenFrom(0.8),
        queries: [
          {
            legend: '{{flow}}',
            expr:
              `(sum by (flow) (rate(${weir('weir_flow_actual_cost_total')}[5m])) > 0` +
              ` or sum by (flow) (rate(${weir('weir_flow_served_cost_total')}[5m])))` +
              ` / on () group_left () (sum (rate(${weir('weir_flow_actual_cost_total')}[5m])) > 0` +
              ` or sum (rate(${weir('weir_flow_served_cost_total')}[5m])))` +
              ` / on (flow) sum by (flow) (avg_over_time(${weir('weir_flow_entitled_share')}[5m]))`,
          },
        ],
      },
      {
        title: 'Is a tier starved?',
        description: 'Requests that waited all the time in a tier that held no place in flight meanwhile.',
        unit: 'short',
        thresholds: redFrom(1),
        queries: [
          {
            legend: '{{tier}}',
            expr:
              `sum by (tier) (min_over_time(${weir('weir_tier_queue_length')}[${RATE}]))` +
              ` unless on (tier) (sum by (tier) (max_over_time(${weir('weir_tier_inflight')}[${RATE}])) > 0)`,
          },
        ],
      },
    ],
  },
  {
    title: 'Leader, apiserver, certificates',
    panels: [
      {
        title: 'Does exactly one replica lead?',
        description: 'Leading replicas of each pool. 0: gateways reach none. 2: each has a queue of its own.',
        unit: 'short',
        thresholds: [{ red: true }, { from: 1, red: false }, { from: 2, red: true }],
        queries: [{ legend: '{{pool}}', expr: `sum by (pool) (${weir('weir_leader')})` }],
      },
      {
        title: 'Does each replica reach the apiserver?',
        description: '0: the replica goes on with the model servers that it knows, and sees no new ones.',
        unit: 'short',
        thresholds: greenFrom(1),
        queries: [
          {
            legend: '{{pod}}{{instance}}',
            expr: `min by (namespace, pod, instance) (${weir('weir_kubernetes_apiserver_up')})`,
          },
        ],
      },
      {
        title: 'When does the certificate expire?',
        description: 'Time until the certificate that Weir presents to Envoy expires. A new one is read while Weir runs.',
        unit: 's',
        thresholds: greenFrom(7 * 24 * 3600),
        queries: [
          {
            legend: '{{pod}}{{instance}}',
            expr: `min by (namespace, pod, instance) (${weir('weir_tls_certificate_expiry_timestamp_seconds')}) - time()`,
          },
        ],
      },
      {
        title: 'Do TLS handshakes fail?',
        description:
          'Connections to the ext_proc port whose TLS handshake failed, by reason. An Envoy that cannot connect sends its ' +
          'requests past Weir, or answers errors. With `other`, the Envoy may have refused the certificate of Weir.',
        unit: 'cps',
        thresholds: redFrom(0.01),
        queries: [
          { legend: '{{reason}}', expr: `sum by (reason) (rate(${weir('weir_tls_handshake_failures_total')}[${RATE}]))` },
        ],
      },
    ],
  },
];

module.exports = { rows };
