//! The dot names: .schema .ctl .stats .regions .scan .import .versions .row.json .key .cellfs .help.
