// Writes the dashboards for Grafana into a directory: node generate.js DIRECTORY. The same input gives the same bytes.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const common = require('@grafana/grafana-foundation-sdk/common');
const dashboard = require('@grafana/grafana-foundation-sdk/dashboard');
const prometheus = require('@grafana/grafana-foundation-sdk/prometheus');
const timeseries = require('@grafana/grafana-foundation-sdk/timeseries');
const { rows } = require('./questions.js');

const WIDTH = 24; // of Grafana's grid
const datasource = { type: 'prometheus', uid: '${datasource}' };

// colours has the thresholds as Grafana's: a value has the colour of the last step that it reaches.
const colours = (thresholds) =>
  new dashboard.ThresholdsConfigBuilder()
    .mode(dashboard.ThresholdsMode.Absolute)
    .steps(thresholds.map(({ from = null, red }) => ({ value: from, color: red ? 'red' : 'green' })));

// inWords says what is red, for the panel's description.
const inWords = (thresholds) =>
  thresholds
    .map(({ from, red }, i) => {
      const next = thresholds[i + 1];
      if (!red) return '';
      if (from === undefined) return `below ${next.from}`;
      return `from ${from} on`;
    })
    .filter(Boolean)
    .join(', and ');

const panel = ({ title, description, unit, thresholds, queries }, id, width) => {
  const builder = new timeseries.PanelBuilder()
    .id(id)
    .title(title)
    .description(`${description} Red: ${inWords(thresholds)}.`)
    .datasource(datasource)
    .unit(unit)
    .min(0)
    .thresholds(colours(thresholds))
    .thresholdsStyle(new common.GraphThresholdsStyleConfigBuilder().mode(common.GraphThresholdsStyleMode.DashedAndArea))
    .legend(new common.VizLegendOptionsBuilder().showLegend(true).displayMode(common.LegendDisplayMode.List))
    .span(width)
    .height(8);
  queries.forEach(({ expr, legend }, i) =>
    builder.withTarget(
      new prometheus.DataqueryBuilder()
        .refId(String.fromCharCode('A'.charCodeAt(0) + i))
        .datasource(datasource)
        .expr(expr)
        .legendFormat(legend)
        .range(),
    ),
  );
  return builder;
};

// labelValues is a variable with the values of a label, all of them at first. `.*` fits series without the label, too.
const labelValues = (name, label, description, query) =>
  new dashboard.QueryVariableBuilder(name)
    .label(label)
    .description(description)
    .datasource(datasource)
    .query(query)
    .refresh(dashboard.VariableRefresh.OnTimeRangeChanged)
    .sort(dashboard.VariableSort.AlphabeticalAsc)
    .multi(true)
    .includeAll(true)
    .allValue('.*')
    .current({ selected: true, text: ['All'], value: ['$__all'] });

const weir = () => {
  const board = new dashboard.DashboardBuilder('Weir')
    .uid('weir')
    .description('Each panel is a question of an operator, and says in its description which values are red.')
    .tags(['weir'])
    .editable()
    .timezone('browser')
    .time({ from: 'now-1h', to: 'now' })
    .refresh('30s')
    .tooltip(dashboard.DashboardCursorSync.Crosshair)
    .withVariable(new dashboard.DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'))
    .withVariable(labelValues('namespace', 'Namespace', 'Namespaces of Weir.', 'label_values(weir_config_valid, namespace)'))
    .withVariable(
      labelValues('job', 'Job', 'Jobs that scrape Weir.', 'label_values(weir_config_valid{namespace=~"$namespace"}, job)'),
    )
    .withVariable(
      labelValues('envoys', "Envoy's job", 'Jobs that scrape the Envoys before Weir.',
        'label_values(envoy_http_ext_proc_streams_started, job)'),
    );
  let id = 0;
  for (const row of rows) {
    board.withRow(new dashboard.RowBuilder(row.title).id(++id));
    const width = WIDTH / Math.min(row.panels.length, 3);
    row.panels.forEach((p) => board.withPanel(panel(p, ++id, width)));
  }
  return board.build();
};

const directory = process.argv[2];
if (!directory) {
  console.error('usage: node generate.js DIRECTORY');
  process.exit(2);
}
fs.mkdirSync(directory, { recursive: true });
fs.writeFileSync(path.join(directory, 'weir.json'), `${JSON.stringify(weir(), null, 2)}\n`);
