"""Style of the HTML report: one column that fits a phone and a page, in light and in dark colours."""

STYLE = """
:root{--paper:#fff; --ink:#1c2430; --soft:#5b6675; --line:#dde2e9; --tint:#f4f6f9; --blue:#2f6fd0; --red:#d8443a;
  --green:#2e8b57; --amber:#9a5b00; --amber-tint:#fff4e0; color-scheme:light dark}
@media (prefers-color-scheme:dark){
  :root{--paper:#14171c; --ink:#e7eaee; --soft:#9aa5b4; --line:#313843; --tint:#1d2229; --blue:#6ea2f5;
    --red:#ff7a6e; --green:#5fc48d; --amber:#ffc069; --amber-tint:#33270f}
}
*{box-sizing:border-box}
body{margin:0; background:var(--paper); color:var(--ink); font:16px/1.55 system-ui,sans-serif;
  -webkit-text-size-adjust:100%}
main{max-width:860px; margin:0 auto; padding:28px 20px 60px}
h1{font-size:1.9rem; line-height:1.2; margin:0 0 4px; overflow-wrap:anywhere}
h2{font-size:1.25rem; margin:0 0 10px}
h3{font-size:1rem; margin:0 0 6px; overflow-wrap:anywhere}
p{margin:0 0 10px; overflow-wrap:anywhere}
header p,.note,figcaption,footer{color:var(--soft)}
.note,figcaption,footer{font-size:.875rem; line-height:1.45}
section{border-top:1px solid var(--line); padding:22px 0 12px; margin-top:14px}
footer{border-top:1px solid var(--line); padding-top:12px}
.tiles{display:grid; grid-template-columns:repeat(auto-fit,minmax(180px,1fr)); gap:12px; margin:20px 0 6px}
.tiles div{background:var(--tint); border-radius:10px; padding:14px 16px; color:var(--soft); font-size:.9rem;
  line-height:1.35; overflow-wrap:anywhere}
.tiles b{display:block; color:var(--ink); font-size:1.75rem; line-height:1.2; font-variant-numeric:tabular-nums}
.tiles div:first-child b{color:var(--blue)}
figure{margin:0 0 14px; max-width:520px}
figcaption{margin-top:4px}
.grid{columns:330px 2; column-gap:32px; margin-top:18px}
.grid figure{break-inside:avoid; padding-bottom:6px}
.wide{overflow-x:auto}
table{border-collapse:collapse; font-variant-numeric:tabular-nums; margin-bottom:8px}
th,td{padding:5px 12px 5px 0; text-align:left; vertical-align:top; border-bottom:1px solid var(--line);
  overflow-wrap:anywhere}
th{font-weight:600}
thead th{color:var(--soft); font-size:.875rem; vertical-align:bottom}
td.end{text-align:right; white-space:nowrap}
.matrix td,.matrix thead th{text-align:right; padding:6px 10px; min-width:56px}
.matrix thead th:first-child{text-align:left; padding-left:0}
.matrix th{max-width:160px; overflow-wrap:break-word}
.matrix td.right{background:color-mix(in srgb,var(--green) calc(var(--share)*45%),transparent)}
.matrix td.false{background:color-mix(in srgb,var(--red) calc(var(--share)*60%),transparent)}
.swarm{max-width:720px}
.row{display:grid; grid-template-columns:minmax(90px,30%) 1fr; gap:12px; align-items:center}
.row>span{display:flex; justify-content:space-between; gap:8px; overflow-wrap:anywhere; line-height:1.25;
  font-size:.94rem; min-width:0}
.row b{font-weight:500; color:var(--soft); font-variant-numeric:tabular-nums; white-space:nowrap}
.ends>div{display:flex; justify-content:space-between; gap:8px}
.ends i{font-style:normal; font-size:.8rem; color:var(--soft)}
.bar{height:14px; border-radius:3px; background:linear-gradient(var(--blue),var(--blue)) no-repeat;
  background-size:calc(var(--share)*100%) 100%; margin:5px 0}
.levels .row{grid-template-columns:minmax(110px,44%) 1fr}
svg{display:block; width:100%; height:auto; overflow:visible}
svg text{font-size:11.5px; fill:var(--soft); font-variant-numeric:tabular-nums}
svg .mid{text-anchor:middle}
svg .end{text-anchor:end}
svg .grid,svg .zero{stroke:var(--line); stroke-width:1}
svg .rug{stroke:var(--soft); stroke-width:.8; opacity:.6}
svg .curve{fill:none; stroke:var(--blue); stroke-width:2.2; stroke-linejoin:round}
svg .ideal{fill:none; stroke:var(--soft); stroke-width:1.2; stroke-dasharray:5 4}
svg .whisker{stroke:var(--blue); stroke-width:1.4; opacity:.6}
svg .band{fill:var(--blue); opacity:.12}
svg circle.dot{fill:var(--blue); opacity:.75}
svg circle.grey{fill:var(--soft); opacity:.6}
svg .curve1{stroke:var(--red)}
svg .curve2{stroke:var(--green)}
svg .curve3{stroke:#a06fd0}
svg .curve4{stroke:#c9952a}
svg .curve5{stroke:#3aa6a6}
svg circle.curve0{fill:var(--blue); stroke:none}
svg circle.curve1{fill:var(--red); stroke:none}
svg circle.curve2{fill:var(--green); stroke:none}
svg circle.curve3{fill:#a06fd0; stroke:none}
svg circle.curve4{fill:#c9952a; stroke:none}
svg circle.curve5{fill:#3aa6a6; stroke:none}
.key{display:inline-block; width:.7em; height:.7em; border-radius:50%; margin:0 .3em 0 .5em;
  background:var(--blue)}
.key1{background:var(--red)}
.key2{background:var(--green)}
.key3{background:#a06fd0}
.key4{background:#c9952a}
.key5{background:#3aa6a6}
.nowrap{white-space:nowrap}
.miss{display:grid; grid-template-columns:minmax(0,2fr) minmax(0,3fr); gap:4px 24px; border-bottom:1px solid
  var(--line); padding:8px 0; break-inside:avoid}
.miss p,.miss ul{margin:0}
ul{padding-left:1.1em; margin:0 0 10px}
li{overflow-wrap:anywhere}
.miss li b{font-weight:500; color:var(--soft); white-space:nowrap}
.warn{background:var(--amber-tint); color:var(--amber); border-radius:6px}
p.warn{padding:8px 12px}
em.warn{font-style:normal; font-size:.8rem; padding:1px 6px}
pre{background:var(--tint); border-radius:8px; padding:12px 14px; font-size:.875rem; line-height:1.5;
  white-space:pre-wrap; overflow-wrap:anywhere; margin:0 0 10px}
.proof{border-left:3px solid var(--green); padding-left:12px}
@media (max-width:560px){
  main{padding:20px 16px 40px}
  .swarm .row{grid-template-columns:1fr; gap:0; margin-bottom:6px}
  h1{font-size:1.5rem}
  .miss{grid-template-columns:1fr}
  .tiles{grid-template-columns:1fr 1fr}
  .tiles div:first-child{grid-column:1/-1}
  .tiles b{font-size:1.4rem}
  .matrix,.matrix thead th{font-size:.8rem}
  .matrix td,.matrix thead th{padding:5px; min-width:40px}
  .columns thead{display:none}
  .columns th,.columns td{display:block; padding:0}
  .columns th{border:0; padding-top:6px}
  .columns td{padding-bottom:6px}
}
@media print{
  :root{--paper:#fff; --ink:#000; --soft:#444; --line:#ccc; --tint:#f4f6f9; --blue:#2f6fd0; --red:#d8443a;
    --green:#2e8b57; --amber:#7a4800; --amber-tint:#fff4e0}
  body{font-size:10.5pt}
  main{max-width:none; padding:0}
  *{-webkit-print-color-adjust:exact; print-color-adjust:exact}
  figure,.row,.miss,tr,pre,.tiles,.swarm{break-inside:avoid}
  h2,h3,h2+p,p:has(+figure){break-after:avoid}
  section{padding:12px 0 4px; margin-top:6px}
  .grid{columns:2}
  figure{max-width:420px}
}
"""
